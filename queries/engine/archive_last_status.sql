-- Which status the newest transition after the epoch $3 gave to each of the results $4; no row for
-- a result without one.
select distinct on (match_id) match_id, to_status
from :"schema".match_transition
where generation_id = $1::integer and shard = $2::integer and epoch > $3::bigint
    and match_id = any($4::bytea[])
order by match_id, epoch desc, ordinal desc
