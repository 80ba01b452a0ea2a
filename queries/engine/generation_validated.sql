-- The newest comparison of a candidate: with which generation, and whether it passed or what differs
-- was accepted. No row when it was never validated.
select base, passed or accepted_by is not null
from :"schema".validation
where generation_id = $1::integer
order by number desc
limit 1
