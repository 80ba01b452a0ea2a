-- Where the shards of a generation stand: a row per shard and source partition, with nulls for a
-- shard that has read nothing yet.
select
    h.shard, h.epoch, h.watermark, o.side, o.source, o.partition, o.position, o.watermark, o.idle,
    o.last_event_at, o.identity
from :"schema".shard h
left join :"schema".source_offset o using (generation_id, shard)
where h.generation_id = $1::integer
order by h.shard, o.side, o.source, o.partition
