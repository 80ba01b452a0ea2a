-- For each of these results the epoch of its first and of its newest transition, and the status
-- after that; no row for one without any transition.
select
    match_id, min(epoch), max(epoch),
    (array_agg(to_status order by epoch desc, ordinal desc))[1]
from :"schema".match_transition
where generation_id = $1::integer and shard = $2::integer and match_id = any($3::bytea[])
group by match_id
