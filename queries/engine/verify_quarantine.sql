-- The quarantined records of the epochs from $3 on, with the columns that their hash covers.
select
    generation_id, shard, epoch, ordinal, side, source, partition, position, reason, raw,
    row_hash, status
from :"schema".quarantine
where generation_id = $1::integer and shard = $2::integer and epoch >= $3::bigint
order by epoch, ordinal
