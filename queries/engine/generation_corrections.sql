-- The open corrections of a generation: what names them, and where they were read.
select shard, epoch, ordinal, side, source, partition, position, event_time, interval_from, interval_to
from :"schema".correction
where generation_id = $1::integer and status = 'open'
order by shard, epoch, ordinal
