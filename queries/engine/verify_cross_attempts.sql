-- Attempts that went on from another epoch than they say, and a fencing token that is no attempt's.
-- See verify_cross_serving.
with first as (
    select attempt_id, min(epoch) as epoch from :"schema".epoch
    where generation_id = $1::integer and shard = $2::integer
        and $3::timestamptz is not null and $4::boolean is not null
    group by attempt_id
)
select 'attempt', a.attempt_id::text, 'its from_epoch is ' || a.from_epoch
    || ', its first epoch was built on ' || e.parent_epoch
from first f
join :"schema".epoch e on e.generation_id = $1::integer and e.shard = $2::integer
    and e.epoch = f.epoch and e.kind = 'epoch'
join :"schema".attempt a on a.generation_id = $1::integer and a.shard = $2::integer
    and a.attempt_id = f.attempt_id
where a.from_epoch <> e.parent_epoch
union all
select 'shard', h.shard::text, 'its fencing token is ' || h.fencing_token
    || ', the highest of an attempt is ' || t.highest
from :"schema".shard h
cross join lateral (
    select max(a.fencing_token) as highest from :"schema".attempt a
    where a.generation_id = h.generation_id and a.shard = h.shard) t
where h.generation_id = $1::integer and h.shard = $2::integer and t.highest <> h.fencing_token
