-- Drops the tables of the hand-written epoch.
drop table :"schema".sql_buffer, :"schema".sql_match, :"schema".sql_match_transition,
    :"schema".sql_offset
