-- Writes the transitions by which an epoch goes back to what an archive says.
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select
    $1::integer, $2::integer, $3::bigint, ordinal, bucket, match_id, from_status, to_status,
    'restored'
from unnest($4::integer[], $5::integer[], $6::bytea[], $7::text[], $8::text[])
    as t (ordinal, bucket, match_id, from_status, to_status)
