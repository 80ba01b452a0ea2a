-- Takes the buffer rows that an epoch adds.
copy :"schema".buffer (
    generation_id, shard, side, id, revision, key, event_time, deleted, attributes, horizon,
    source, partition, position, added_epoch, spilled, row_hash
) from stdin (format binary)
