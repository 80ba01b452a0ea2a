-- Takes a batch.
copy stage from stdin (format binary)
