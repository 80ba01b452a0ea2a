-- Drops the tables of the COPY floor.
drop table :"schema".floor_buffer, :"schema".floor_match, :"schema".floor_match_transition,
    :"schema".floor_epoch;
