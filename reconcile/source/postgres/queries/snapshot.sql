-- The first transaction id that may still be running, and the first that isn't given out yet.
select pg_snapshot_xmin(pg_current_snapshot())::text, pg_snapshot_xmax(pg_current_snapshot())::text
