-- Takes an epoch's rows of the table match_transition.
copy :"schema".floor_match_transition from stdin (format binary)
