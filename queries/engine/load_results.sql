-- All active results that have a live member: a result's horizon is the later one of its members'.
select
    key, horizon, match_id, kind, status, left_id, left_revision, right_id, right_revision,
    left_time, right_time, verdict, differences, changed_epoch, row_hash
from :"schema".match
where generation_id = $1::integer and shard = $2::integer
    and horizon >= $3::timestamptz and status in ('matched', 'provisional', 'final')
