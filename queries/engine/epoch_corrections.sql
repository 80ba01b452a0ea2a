-- Sets aside events that came too late.
insert into :"schema".correction (
    generation_id, shard, epoch, ordinal, side, id, revision, key, event_time, deleted,
    attributes, reason, interval_from, interval_to, source, partition, position, row_hash)
select
    $1::integer, $2::integer, $3::bigint, c.ordinal - 1, side, id, revision, key, event_time,
    deleted, attributes::json, reason, interval_from, interval_to, source, partition, position,
    row_hash
from unnest(
    $4::text[], $5::text[], $6::bigint[], $7::text[], $8::timestamptz[], $9::boolean[],
    $10::text[], $11::text[], $12::timestamptz[], $13::timestamptz[], $14::text[],
    $15::integer[], $16::text[], $17::bytea[]
) with ordinality as c (
    side, id, revision, key, event_time, deleted, attributes, reason, interval_from, interval_to,
    source, partition, position, row_hash, ordinal)
