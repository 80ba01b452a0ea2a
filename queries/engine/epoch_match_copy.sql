-- Takes the result rows of an epoch whose identity is known to be new.
copy :"schema".match (
    generation_id, shard, bucket, match_id, kind, left_id, left_revision, right_id, right_revision,
    key, left_time, right_time, horizon, verdict, differences, status, opened_epoch, changed_epoch,
    row_hash
) from stdin (format binary)
