-- Takes an epoch's rows of the table epoch.
copy :"schema".floor_epoch from stdin (format binary)
