-- Marks corrections as resolved by a generation.
update :"schema".correction c set status = 'resolved', resolved_by = $2::integer
from unnest($3::integer[], $4::bigint[], $5::integer[]) as n (shard, epoch, ordinal)
where c.generation_id = $1::integer and c.shard = n.shard and c.epoch = n.epoch
    and c.ordinal = n.ordinal and c.status = 'open'
