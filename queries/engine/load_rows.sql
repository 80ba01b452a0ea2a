-- All live buffer rows of a shard.
select
    key, horizon, side, id, revision, event_time, deleted, attributes, source, partition,
    position, added_epoch, row_hash
from :"schema".buffer
where generation_id = $1::integer and shard = $2::integer
    and retired_epoch is null and horizon >= $3::timestamptz
