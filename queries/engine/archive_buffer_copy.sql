-- Takes the buffer rows of an archive.
copy :"schema".buffer (
    generation_id, shard, side, id, revision, key, event_time, deleted, attributes, horizon,
    source, partition, position, added_epoch, row_hash
) from stdin (format binary)
