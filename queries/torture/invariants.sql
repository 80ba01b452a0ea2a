-- What must hold however a run was broken: one line for each thing that does not.
with committed as (
    select * from :"schema".epoch where status = 'committed'
), part as (
    select e.epoch, p.*, lag(p."to") over (
        partition by e.generation_id, e.shard, p.side, p.source, p.partition order by e.epoch) as before
    from committed e, json_to_recordset(e.sources)
        as p (side text, source text, partition integer, "from" text, "to" text)
    where e.kind = 'epoch'
), newest as (
    select distinct on (generation_id, shard) * from committed
    order by generation_id, shard, epoch desc
)
select format('result %s has not the identity of its members', encode(m.match_id, 'hex'))
from :"schema".match m join :"schema".generation g using (generation_id)
where encode(m.match_id, 'hex') <> :"schema".match_identity(m.left_id, m.left_revision::text,
    m.right_id, m.right_revision::text, g.rule_version)
union all
select format('result %s is in bucket %s, its horizon is %s', encode(match_id, 'hex'), bucket, horizon)
from :"schema".match where bucket <> floor(extract(epoch from horizon) / 900)
union all
select format('epoch %s reads %s %s from %s, and the one before it read to %s', epoch, side, source,
    "from", before)
from part where before is distinct from "from" and (before is not null or "from" <> '')
union all
select format('epoch %s was written under token %s, after one under token %s', epoch, token, before)
from (
    select e.epoch, a.fencing_token as token, max(a.fencing_token) over (
        partition by e.generation_id, e.shard order by e.epoch
        rows between unbounded preceding and 1 preceding) as before
    from committed e
    join :"schema".attempt a using (generation_id, shard, attempt_id)
) t where token < before
union all
select format('epoch %s names an attempt that never was', epoch)
from committed e
where not exists (select from :"schema".attempt a where a.attempt_id = e.attempt_id)
union all
select format('epoch %s replays epoch %s with other outputs: %s', epoch, replays, replay_divergence)
from committed where replay_divergence is not null
union all
select format('epoch %s is committed, between the restore %s and the epoch %s that it goes back to',
    e.epoch, r.epoch, r.parent_epoch)
from committed e join committed r using (generation_id, shard)
where r.kind = 'restore' and e.epoch > r.parent_epoch and e.epoch < r.epoch
union all
select format('the shard stands at epoch %s and watermark %s, its newest manifest at %s and %s',
    s.epoch, s.watermark, n.epoch, n.watermark_after)
from :"schema".shard s left join newest n using (generation_id, shard)
where (s.epoch, s.watermark) is distinct from (n.epoch, n.watermark_after)
union all
select format('the offset of %s %s is %s, and the newest manifest read to %s', o.side, o.source,
    o.position, p."to")
from newest n
cross join json_to_recordset(n.sources)
    as p (side text, source text, partition integer, "to" text)
left join :"schema".source_offset o on o.generation_id = n.generation_id and o.shard = n.shard
    and o.side = p.side and o.source = p.source and o.partition = p.partition
where o.position is distinct from p."to"
