-- Records released from the quarantine of a side after a number, in the order of their release: of
-- all shards, because a repaired record belongs to the shard of its key, which need not be the one
-- that set it aside.
select
    released_seq, coalesce(repaired, raw), source, partition, position, shard, epoch, ordinal
from :"schema".quarantine
where generation_id = $1::integer and side = $2::text and released_seq > $3::bigint
order by released_seq
limit $4::bigint
