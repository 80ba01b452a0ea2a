-- The columns of the table with oid $1: name, type, whether the type is one of Postgres' own,
-- whether it may be null, the default, and the place in the primary key (0 where it has none).
select a.attname,
       format_type(a.atttypid, null),
       (t.typnamespace = 'pg_catalog'::regnamespace)::text,
       (not a.attnotnull)::text,
       coalesce(pg_get_expr(d.adbin, d.adrelid), ''),
       coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0)::text
from pg_attribute a
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_index i on i.indrelid = a.attrelid and i.indisprimary
where a.attrelid = $1::oid
  and a.attnum > 0
  and not a.attisdropped
order by a.attnum
