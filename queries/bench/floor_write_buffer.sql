-- Takes an epoch's rows of the table buffer.
copy :"schema".floor_buffer from stdin (format binary)
