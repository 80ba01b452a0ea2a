-- Locks the shards of generations, after the epochs under way, and takes them from their workers: none
-- of those can commit any more.
update :"schema".shard h
set fencing_token = fencing_token + 1, attempt_id = null, worker = null, requested_by = null,
    lease_until = '-infinity'
from (
    select generation_id, shard from :"schema".shard
    where generation_id = any($1::integer[])
    order by generation_id, shard
    for update) locked
where h.generation_id = locked.generation_id and h.shard = locked.shard
