-- What of the generation does not fit together. This and all other statements verify_cross give
-- the table, the row and what is wrong with it, and take the watermark of the newest epoch as $3 and
-- whether to look at everything as $4.
with own as materialized (
    select * from :"schema".generation where generation_id = $1::integer and $2::integer >= 0
        and $3::timestamptz is not null and $4::boolean is not null
)
select 'serving', o.reconciliation, 'it is missing: nothing says which generation the views show'
from own o
where not exists (select from :"schema".serving s where s.reconciliation = o.reconciliation)
union all
select 'serving', s.reconciliation, 'it shows generation ' || s.generation_id
    || ', which belongs to reconciliation ' || g.reconciliation
from own o
join :"schema".serving s using (reconciliation)
join :"schema".generation g on g.generation_id = s.generation_id
where g.reconciliation <> s.reconciliation
union all
select 'shard', n::text, 'it is missing: generation ' || o.generation_id || ' has '
    || o.shards || ' shards'
from own o
cross join generate_series(0, o.shards - 1) as n
where n <> $2::integer and not exists (
    select from :"schema".shard h where h.generation_id = o.generation_id and h.shard = n)
union all
select 'shard', h.shard::text, 'generation ' || o.generation_id || ' has only ' || o.shards
    || ' shards'
from own o
join :"schema".shard h using (generation_id)
where h.shard >= o.shards
