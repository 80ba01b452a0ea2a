-- What an epoch that reads nothing goes on with: epoch, watermark, and of its manifest the digest, the
-- digest of the buffer and its rows; nulls before the first.
-- And the clock of the database.
select h.epoch, h.watermark, e.digest, e.buffer_digest, e.buffered, clock_timestamp()
from :"schema".shard h
left join :"schema".epoch e on e.generation_id = h.generation_id and e.shard = h.shard
    and e.epoch = h.epoch and e.status = 'committed'
where h.generation_id = $1::integer and h.shard = $2::integer
