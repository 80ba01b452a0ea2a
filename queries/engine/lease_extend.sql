-- Extends the lease of an attempt that holds its shard. It waits for nothing: where the row is
-- locked, an epoch is in its commit and extends the lease itself. The token need not be compared,
-- because a new holder always comes with an attempt of its own. Returns the worker that asks for
-- the shard, or null; no row when the attempt no longer holds it.
with held as (
    select generation_id, shard from :"schema".shard
    where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
    for no key update skip locked
), extended as (
    update :"schema".shard s
    set lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond'
    from held
    where s.generation_id = held.generation_id and s.shard = held.shard
)
select requested_by from :"schema".shard
where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
