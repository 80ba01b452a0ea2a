-- The corrections of the epochs from $3 on, with the columns that their hash covers.
select
    generation_id, shard, epoch, ordinal, side, id, revision, key, event_time, deleted,
    attributes, reason, interval_from, interval_to, source, partition, position, row_hash, status
from :"schema".correction
where generation_id = $1::integer and shard = $2::integer and epoch >= $3::bigint
order by epoch, ordinal
