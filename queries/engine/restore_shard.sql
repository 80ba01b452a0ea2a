-- Puts the row of a shard back that is missing: where its newest manifest that counts left it, under
-- a token that no attempt had. What it says is verified before anybody goes on from it.
insert into :"schema".shard (generation_id, shard, epoch, fencing_token, watermark)
select
    g.generation_id, $2::integer, coalesce(e.epoch, 0),
    coalesce((
        select max(a.fencing_token) from :"schema".attempt a
        where a.generation_id = g.generation_id and a.shard = $2::integer), 0),
    coalesce(e.watermark_after, '-infinity')
from :"schema".generation g
left join lateral (
    select m.epoch, m.watermark_after from :"schema".epoch m
    where m.generation_id = g.generation_id and m.shard = $2::integer and m.status = 'committed'
    order by m.epoch desc
    limit 1) e on true
where g.generation_id = $1::integer and g.shards > $2::integer
on conflict do nothing
