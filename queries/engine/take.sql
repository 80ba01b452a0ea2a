-- Takes a shard for an attempt, if its lease was released, has run out by the database clock, or
-- waits for this worker after a hand-over: the fencing token grows, so that whoever held the shard
-- can no longer commit. Waits for an epoch in its commit, which extends the lease. May be repeated
-- by an attempt that does not know whether it took the shard. Returns epoch, token and watermark;
-- no row when somebody else holds the lease, the generation neither serves nor is
-- a candidate, or there is no such shard.
with taken as (
    update :"schema".shard
    set fencing_token = fencing_token + 1, attempt_id = $3::uuid, worker = $4::text,
        lease_until = clock_timestamp() + $5::bigint * interval '1 microsecond',
        requested_by = null
    where generation_id = $1::integer and shard = $2::integer
        and (lease_until <= clock_timestamp() or attempt_id = $3::uuid
            or (attempt_id is null and worker = $4::text))
        and exists (
            select from :"schema".generation g
            where g.generation_id = $1::integer and g.status in ('candidate', 'serving'))
    returning generation_id, shard, epoch, fencing_token, watermark
), noted as (
    insert into :"schema".attempt
        (generation_id, shard, attempt_id, fencing_token, worker, from_epoch)
    select generation_id, shard, $3::uuid, fencing_token, $4::text, epoch from taken
    on conflict (generation_id, shard, attempt_id)
        do update set fencing_token = excluded.fencing_token
)
select epoch, fencing_token, watermark from taken
