-- The transitions of the epochs from $3 on, in their order.
select epoch, ordinal, bucket, match_id, from_status, to_status, reason
from :"schema".match_transition
where generation_id = $1::integer and shard = $2::integer and epoch >= $3::bigint
order by epoch, ordinal
