-- The first transaction id that may still write in this database, where $1 is the snapshot and $2 the
-- sessions of snapshot.sql: the oldest that was running and isn't known to belong to another database.
-- A session that holds a transaction which had begun before the session was seen elsewhere has had it
-- there. A transaction that has ended meanwhile is held by nobody, and counts. A standby doesn't know
-- whose its primary's transactions are.
select case
           when pg_is_in_recovery() then pg_snapshot_xmin($1::pg_snapshot)
           else coalesce((
               select min(running)
               from pg_snapshot_xip($1::pg_snapshot) as running
               where not exists (
                   select
                   from pg_locks as l
                   where l.locktype = 'transactionid'
                     and l.mode = 'ExclusiveLock'
                     and l.granted
                     and l.transactionid = running::xid
                     and l.pid = any ($2::int[])
               )
                 and not exists (
                   select
                   from pg_prepared_xacts as p
                   where p.transaction = running::xid
                     and p.database <> current_database()
               )
           ), pg_snapshot_xmax($1::pg_snapshot))
       end::text
