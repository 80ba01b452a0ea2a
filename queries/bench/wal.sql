-- Gives how many bytes of WAL the server has ever written.
select (pg_current_wal_insert_lsn() - '0/0')::bigint
