-- Drops the table of parsed events.
drop table :"schema".bench_events
