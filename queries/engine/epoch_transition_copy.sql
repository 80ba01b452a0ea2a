-- Takes the transitions of an epoch's new result rows.
copy :"schema".match_transition (
    generation_id, shard, epoch, ordinal, bucket, match_id, to_status, reason
) from stdin (format binary)
