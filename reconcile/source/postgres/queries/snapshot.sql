-- Which transactions are running, the first transaction id that isn't given out yet, and which
-- sessions, looked for after that, belong to other databases.
select pg_current_snapshot()::text,
       pg_snapshot_xmax(pg_current_snapshot())::text,
       array(
           select pid
           from pg_stat_activity
           where datid <> (select oid from pg_database where datname = current_database())
       )::text
