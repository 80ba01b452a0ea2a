-- What tally demo shows of how the results came about: every transition, counted.
select kind, from_status as "from", to_status as "to", reason, count(*) as transitions
from :"schema".result_history
group by kind, from_status, to_status, reason
order by kind desc, from_status nulls first, to_status, reason
