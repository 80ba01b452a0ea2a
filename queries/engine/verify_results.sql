-- All results of a shard, of whatever status.
select
    key, horizon, bucket, match_id, kind, status, left_id, left_revision, right_id, right_revision,
    left_time, right_time, verdict, differences, changed_epoch, row_hash, opened_epoch
from :"schema".match
where generation_id = $1::integer and shard = $2::integer
