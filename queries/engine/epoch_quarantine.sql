-- Sets aside records that could not be taken.
insert into :"schema".quarantine (
    generation_id, shard, epoch, ordinal, side, source, partition, position, reason, raw,
    row_hash)
select
    $1::integer, $2::integer, $3::bigint, q.ordinal - 1, side, source, partition, position,
    reason, raw, row_hash
from unnest($4::text[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::bytea[],
    $10::bytea[]
) with ordinality as q (side, source, partition, position, reason, raw, row_hash, ordinal)
