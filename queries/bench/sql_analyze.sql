-- Tells the planner how much there is.
analyze :"schema".sql_buffer, :"schema".sql_match
