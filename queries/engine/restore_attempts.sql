-- Puts a row in the place of each that manifests name and that is missing; what it said is lost.
insert into :"schema".attempt (
    generation_id, shard, attempt_id, fencing_token, worker, from_epoch, started_at, ended_at,
    outcome)
select
    e.generation_id, e.shard, e.attempt_id, 0, 'unknown', min(e.parent_epoch), min(e.started_at),
    max(e.committed_at), 'its row was missing'
from :"schema".epoch e
where e.generation_id = $1::integer and e.shard = $2::integer and e.epoch >= $3::bigint
    and not exists (
        select from :"schema".attempt a
        where a.generation_id = e.generation_id and a.shard = e.shard
            and a.attempt_id = e.attempt_id)
group by e.generation_id, e.shard, e.attempt_id
