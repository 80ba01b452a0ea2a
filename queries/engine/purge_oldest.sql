-- What a purge of a shard would begin with: the epoch that is purged behind now, the rows that are
-- no longer needed since then, the rows and the blocks of the whole buffer, and then the manifest
-- of the oldest epoch to retain: the oldest of the newest $3 that is not older than $4 microseconds
-- by the clock of the database, but never one of the newest two. Its columns are those of
-- verify_manifests. No row while there are not two.
with newest as materialized (
    select epoch, committed_at from :"schema".epoch
    where generation_id = $1::integer and shard = $2::integer and status = 'committed'
    order by generation_id desc, shard desc, epoch desc
    limit $3::bigint
), oldest as materialized (
    select min(epoch) as epoch
    from (select *, row_number() over (order by epoch desc) as nth from newest) n
    where nth = 2
        or (nth > 2 and committed_at >= clock_timestamp() - $4::bigint * interval '1 microsecond')
), purged as materialized (
    select s.purged_epoch, coalesce(p.buffered, 0) as buffered
    from :"schema".shard s
    left join :"schema".epoch p
        on p.generation_id = s.generation_id and p.shard = s.shard and p.epoch = s.purged_epoch
    where s.generation_id = $1::integer and s.shard = $2::integer
), added as materialized (
    select coalesce(sum(accepted), 0)::bigint as accepted
    from :"schema".epoch e
    where e.generation_id = $1::integer and e.shard = $2::integer and e.status = 'committed'
        and e.epoch > (select purged_epoch from purged)
        and e.epoch <= (select epoch from oldest)
), relation as materialized (
    select
        greatest(c.reltuples, 0)::bigint as rows,
        pg_relation_size(c.oid) / current_setting('block_size')::bigint as blocks
    from pg_class c where c.reltype = pg_typeof(null:::"schema".buffer)::oid
)
select
    purged.purged_epoch, added.accepted + purged.buffered - e.buffered, relation.rows,
    relation.blocks,
    e.generation_id, e.shard, e.epoch, e.kind, e.parent_epoch, e.attempt_id, e.clock,
    e.watermark_before, e.watermark_after, e.sources, e.read, e.accepted, e.duplicate, e.stale,
    e.late, e.quarantined, e.out_of_shard, e.ahead, e.paired, e.provisional_opened, e.retracted,
    e.superseded, e.final, e.expired, e.buffered, e.buffer_digest, e.output_digest, e.replays,
    e.replay_divergence, e.parent_digest, e.started_at, e.committed_at, e.digest, e.status,
    true
from :"schema".epoch e
cross join purged cross join added cross join relation
where e.generation_id = $1::integer and e.shard = $2::integer
    and e.epoch = (select epoch from oldest)
