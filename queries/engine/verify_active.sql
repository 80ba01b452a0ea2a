-- All active results that have a live member (a result's horizon is the later one of its members'),
-- and all results of any status that changed in the epochs from $4 on.
select
    key, horizon, bucket, match_id, kind, status, left_id, left_revision, right_id, right_revision,
    left_time, right_time, verdict, differences, changed_epoch, row_hash, opened_epoch
from :"schema".match
where generation_id = $1::integer and shard = $2::integer
    and ((horizon >= $3::timestamptz and status in ('matched', 'provisional', 'final'))
        or changed_epoch >= $4::bigint)
