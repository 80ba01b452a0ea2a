-- Manifests in the order of epochs, with all columns in the order of the table: those from the
-- oldest retained one on, which is the $3-th newest that counts (all of them where there are fewer
-- or $3 is 0), and those named in $4. The last column tells whether the manifest's attempt exists.
select
    e.generation_id, e.shard, e.epoch, e.kind, e.parent_epoch, e.attempt_id, e.clock,
    e.watermark_before, e.watermark_after, e.sources, e.read, e.accepted, e.duplicate, e.stale,
    e.late, e.quarantined, e.out_of_shard, e.ahead, e.paired, e.provisional_opened, e.retracted,
    e.superseded, e.final, e.expired, e.buffered, e.buffer_digest, e.output_digest, e.replays,
    e.replay_divergence, e.parent_digest, e.started_at, e.committed_at, e.digest, e.status,
    exists (select from :"schema".attempt a
        where a.generation_id = e.generation_id and a.shard = e.shard
            and a.attempt_id = e.attempt_id)
from :"schema".epoch e
where e.generation_id = $1::integer and e.shard = $2::integer
    and (e.epoch = any($4::bigint[]) or e.epoch >= coalesce((
        select o.epoch from :"schema".epoch o
        where o.generation_id = $1::integer and o.shard = $2::integer and o.status = 'committed'
            and $3::bigint > 0
        order by o.epoch desc
        offset greatest($3::bigint, 1) - 1 limit 1), 0))
order by e.epoch
