-- Releases an open record with the next number of its side, over all shards. The row of shard 0
-- must be locked, so that numbers become visible in their order. Returns the number; no row when the
-- record is not open.
update :"schema".quarantine q
set status = 'released', repaired = $5::bytea, released_at = clock_timestamp(),
    released_seq = 1 + coalesce((
        select max(o.released_seq) from :"schema".quarantine o
        where o.generation_id = q.generation_id and o.side = q.side), 0)
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
    and ordinal = $4::integer and status = 'open'
returning released_seq
