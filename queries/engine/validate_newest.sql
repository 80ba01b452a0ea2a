-- The newest comparison of a candidate.
select generation_id, base, number, scope, passed, only_base, only_candidate, in_both, explained,
    unexplained, totals, differences, coalesce(accepted_by, ''), coalesce(accepted_why, ''),
    validated_at
from :"schema".validation
where generation_id = $1::integer
order by number desc
limit 1
