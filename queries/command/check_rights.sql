-- What the role may do in the schema: which rights a worker needs and lacks, and which it has and
-- doesn't need. One row; $1 is the schema.
with tables as (
    select c.relname, c.oid
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p') and c.relname <> 'goose_db_version'
), needed as (
    select t.relname, p.privilege
    from tables as t
    cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) as p (privilege)
    where not has_table_privilege(t.oid, p.privilege)
)
select
    has_schema_privilege(n.oid, 'USAGE') as usage,
    has_schema_privilege(n.oid, 'CREATE') as may_create,
    (select count(*) from tables as t where has_table_privilege(t.oid, 'TRUNCATE')) as truncatable,
    coalesce((select string_agg(privilege || ' on ' || relname, ', ' order by relname, privilege)
              from needed), '') as missing
from pg_namespace as n
where n.nspname = $1
