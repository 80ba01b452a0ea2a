-- The row of a shard, what it must agree with, and how far back the retained epochs go: epoch,
-- fencing token, watermark, the highest token of an attempt, how many shards the generation has,
-- how many of them have a row, and the oldest epoch whose buffer rows are kept. The columns of the shard are null when its row is missing; no
-- row when there is no such generation.
select
    h.epoch, h.fencing_token, h.watermark,
    (select max(a.fencing_token) from :"schema".attempt a
     where a.generation_id = $1::integer and a.shard = $2::integer),
    g.shards,
    (select count(*) from :"schema".shard o
     where o.generation_id = $1::integer and o.shard < g.shards),
    h.purged_epoch
from :"schema".generation g
left join :"schema".shard h on h.generation_id = g.generation_id and h.shard = $2::integer
where g.generation_id = $1::integer
