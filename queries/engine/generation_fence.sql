-- Locks the shards of generations, after the epochs under way, and takes them from their workers: none
-- of those can commit any more. Notes for each an attempt of the worker $2, which is over. Returns
-- generation, shard and attempt.
with locked as (
    select generation_id, shard from :"schema".shard
    where generation_id = any($1::integer[])
    order by generation_id, shard
    for update
), fenced as (
    update :"schema".shard h
    set fencing_token = fencing_token + 1, attempt_id = null, worker = null, requested_by = null,
        lease_until = '-infinity'
    from locked
    where h.generation_id = locked.generation_id and h.shard = locked.shard
    returning h.generation_id, h.shard, h.fencing_token, h.epoch
)
insert into :"schema".attempt (
    generation_id, shard, attempt_id, fencing_token, worker, from_epoch, ended_at, outcome)
select
    generation_id, shard, gen_random_uuid(), fencing_token, $2::text, epoch, clock_timestamp(),
    'done'
from fenced
returning generation_id, shard, attempt_id::text
