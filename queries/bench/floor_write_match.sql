-- Takes an epoch's rows of the table match.
copy :"schema".floor_match from stdin (format binary)
