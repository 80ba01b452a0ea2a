-- Which copy of the database this is: the identifier that initdb gave it and the timeline that it
-- writes, 0 on a standby.
select
    system_identifier,
    case when pg_is_in_recovery() then 0
    else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint end
from pg_control_system()
