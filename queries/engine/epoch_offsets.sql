-- Moves the source partitions.
insert into :"schema".source_offset as o (
    generation_id, shard, side, source, partition, position, watermark, idle, last_event_at,
    identity, epoch)
select
    $1::integer, $2::integer, side, source, partition, position, watermark, idle, last_event_at,
    identity, $3::bigint
from unnest(
    $4::text[], $5::text[], $6::integer[], $7::text[], $8::timestamptz[], $9::boolean[],
    $10::timestamptz[], $11::text[]
) as p (side, source, partition, position, watermark, idle, last_event_at, identity)
on conflict (generation_id, shard, side, source, partition) do update set
    position = excluded.position,
    watermark = excluded.watermark,
    idle = excluded.idle,
    last_event_at = excluded.last_event_at,
    identity = excluded.identity,
    epoch = excluded.epoch
