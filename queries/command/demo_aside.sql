-- What tally demo shows of the records that were set aside, and one example of each.
select 'correction' as "set aside", side, reason, count(*) as records, min(id) as example
from :"schema".corrections
group by side, reason
union all
select 'quarantine', side, reason, count(*), left(min(raw_text), 50)
from :"schema".quarantined
group by side, reason
order by 1, 2, 3
