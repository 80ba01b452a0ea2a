-- Writes the transitions by which an epoch goes back to what an archive says.
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, match_id, from_status, to_status, reason)
select $1::integer, $2::integer, $3::bigint, ordinal, match_id, from_status, to_status, 'restored'
from unnest($4::integer[], $5::bytea[], $6::text[], $7::text[])
    as t (ordinal, match_id, from_status, to_status)
