-- Result rows of every status by the rest of their primary keys. The look-ups are written as in fetch.
select
    m.key, m.horizon, m.bucket, m.match_id, m.kind, m.status, m.left_id, m.left_revision,
    m.right_id, m.right_revision, m.left_time, m.right_time, m.verdict, m.differences, m.changed_epoch,
    m.row_hash, m.opened_epoch
from unnest($3::integer[], $4::bytea[]) as asked (bucket, match_id)
cross join lateral (
    select x.* from :"schema".match x
    where x.generation_id = $1::integer and x.shard = $2::integer
        and x.bucket = asked.bucket and x.match_id = asked.match_id
    offset 0) m
