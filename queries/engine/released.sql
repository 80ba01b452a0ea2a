-- Records released from the quarantine of a side after a number, in the order of their release.
select
    released_seq, coalesce(repaired, raw), source, partition, position, epoch, ordinal
from :"schema".quarantine
where generation_id = $1::integer and shard = $2::integer and side = $3::text
    and released_seq > $4::bigint
order by released_seq
limit $5::bigint
