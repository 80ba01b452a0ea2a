-- The usable indexes over plain columns of the table with oid $1: whether it is unique for every
-- row, and its key columns in order, as a JSON array.
select (i.indisunique and i.indimmediate)::text,
       json_agg(a.attname order by k.place)::text
from pg_index i
cross join unnest(i.indkey::int2[]) with ordinality as k(attnum, place)
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = $1::oid
  and i.indisvalid
  and i.indpred is null
  and i.indexprs is null
  and k.place <= i.indnkeyatts
group by i.indexrelid
order by i.indexrelid
