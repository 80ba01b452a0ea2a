-- How far every source partition of a shard has been read.
select side, source, partition, position, watermark, idle, last_event_at, identity
from :"schema".source_offset
where generation_id = $1::integer and shard = $2::integer
order by side, source collate "C", partition
