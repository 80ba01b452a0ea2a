-- The results of reconciliation $1 whose identity begins with the hex digits $2, at most 11. A shard's
-- results are looked up in one bucket after the other, each found by the one before.
with recursive bucket as (
    select h.generation_id, h.shard, first.bucket
    from :"schema".generation g
    join :"schema".shard h using (generation_id)
    cross join lateral (
        select m.bucket from :"schema".match m
        where m.generation_id = h.generation_id and m.shard = h.shard
        order by m.generation_id, m.shard, m.bucket limit 1) first
    where g.reconciliation = $1::text and g.status in ('serving', 'retired')
    union all
    select b.generation_id, b.shard, next.bucket
    from bucket b
    cross join lateral (
        select m.bucket from :"schema".match m
        where m.generation_id = b.generation_id and m.shard = b.shard and m.bucket > b.bucket
        order by m.generation_id, m.shard, m.bucket limit 1) next
)
select distinct encode(m.match_id, 'hex') as match_id, m.left_id, m.right_id
from bucket b
cross join lateral (
    select x.match_id, x.left_id, x.right_id from :"schema".match x
    where x.generation_id = b.generation_id and x.shard = b.shard and x.bucket = b.bucket
        and x.match_id >= decode(rpad($2::text, 64, '0'), 'hex')
        and x.match_id <= decode(rpad($2::text, 64, 'f'), 'hex')
    offset 0) m
order by match_id
limit 11
