-- One row where the table $1, given as quoted identifiers, is there: its oid, the database's oid,
-- whether policies hide rows from this role, and whether the role may read it.
select c.oid::text,
       d.oid::text,
       row_security_active(c.oid)::text,
       (has_table_privilege(c.oid, 'SELECT') or has_any_column_privilege(c.oid, 'SELECT'))::text
from pg_class c
join pg_database d on d.datname = current_database()
where c.oid = to_regclass($1)
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
