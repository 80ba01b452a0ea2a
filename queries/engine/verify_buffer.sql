-- All rows of the buffer that are stored, live or not.
select
    key, horizon, side, id, revision, event_time, deleted, attributes, source, partition,
    position, added_epoch, row_hash, retired_epoch
from :"schema".buffer
where generation_id = $1::integer and shard = $2::integer
