-- What tally check asks of the server and the role: one row.
select
    current_setting('server_version_num')::integer as version_number,
    current_setting('server_version') as version,
    current_setting('server_encoding') as encoding,
    pg_is_in_recovery() as standby,
    r.rolname::text as role,
    array_remove(array[
        case when r.rolsuper then 'superuser' end,
        case when r.rolcreaterole and not r.rolsuper then 'create roles' end,
        case when r.rolcreatedb and not r.rolsuper then 'create databases' end,
        case when r.rolreplication and not r.rolsuper then 'replication' end,
        case when r.rolbypassrls and not r.rolsuper then 'bypass row-level security' end
    ], null) as attributes
from pg_roles as r
where r.rolname = current_user
