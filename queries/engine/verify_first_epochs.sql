-- The epoch of the first transition of each of these results; no row for one without any.
select match_id, min(epoch)
from :"schema".match_transition
where generation_id = $1::integer and shard = $2::integer and match_id = any($3::bytea[])
group by match_id
