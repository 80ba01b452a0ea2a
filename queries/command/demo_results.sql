-- What tally demo shows first: the active results.
select kind, status, verdict, count(*) as rows
from :"schema".results
group by kind, status, verdict
order by kind, status, verdict
