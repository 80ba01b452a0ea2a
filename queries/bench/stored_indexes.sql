-- What drops the indexes of the results, and what makes them again: with many rows both at once cost
-- far less than each row's entries.
with results as (
    select oid from pg_class where reltype = pg_typeof(null:::"schema".match)::oid
)
select
    format('alter table %s drop constraint %I', conrelid::regclass, conname) as remove,
    format('alter table %s add constraint %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid)) as make
from pg_constraint
where conrelid = (select oid from results) and contype = 'p'
union all
select format('drop index %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
from pg_index
where indrelid = (select oid from results) and not indisprimary
