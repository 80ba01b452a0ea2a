-- How far every source partition of a shard has been read, and the epoch that says so.
select side, source, partition, position, watermark, idle, last_event_at, identity, epoch
from :"schema".source_offset
where generation_id = $1::integer and shard = $2::integer
order by side, source, partition
