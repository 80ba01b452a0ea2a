-- The result rows that changed in the epochs after $3, each once. They are looked up as in fetch.
select
    m.generation_id, m.shard, m.bucket, m.match_id, m.kind, m.left_id, m.left_revision,
    m.right_id, m.right_revision, m.key, m.left_time, m.right_time, m.horizon, m.verdict, m.differences,
    m.status, m.opened_epoch, m.changed_epoch, m.row_hash
from (
    select distinct t.bucket, t.match_id from :"schema".match_transition t
    where t.generation_id = $1::integer and t.shard = $2::integer and t.epoch > $3::bigint
    offset 0) as asked
cross join lateral (
    select x.* from :"schema".match x
    where x.generation_id = $1::integer and x.shard = $2::integer
        and x.bucket = asked.bucket and x.match_id = asked.match_id
    offset 0) m
