-- Notes the attempt that writes the epoch of a rebuild into a shard that is locked.
insert into :"schema".attempt (
    generation_id, shard, attempt_id, fencing_token, worker, from_epoch, ended_at, outcome)
select generation_id, shard, $3::uuid, fencing_token, $4::text, epoch, clock_timestamp(), 'done'
from :"schema".shard
where generation_id = $1::integer and shard = $2::integer
