-- Question: What is unmatched now, by age bucket and side?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: attribute text '' -- attribute to sum, a dotted path; no sums when empty
-- Column: reconciliation -- the reconciliation
-- Column: side -- left or right
-- Column: age_bucket -- under 1 d, 1-7 d, 8-30 d or over 30 d, by event time and the clock
-- Column: rows -- unmatched rows, provisional and final
-- Column: final -- how many of them can no longer change
-- Column: amount -- exact sum of the attribute
-- Column: unknown -- rows without a number there, or whose buffer row is no longer kept
-- Column: oldest -- event time of the oldest
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?attribute} \else \set attribute '' \endif
select reconciliation, side, age_bucket, count(*) as rows,
    count(*) filter (where status = 'final') as final,
    sum(amount) as amount,
    case when :'attribute' <> '' then count(*) - count(amount) end as unknown,
    min(event_time) as oldest
from (
    select reconciliation, side, age_bucket, status, event_time,
        case when :'attribute' <> ''
            then :"schema".number_at(attributes, :'attribute') end as amount
    from :"schema".unmatched
    where :'reconciliation' = '' or reconciliation = :'reconciliation'
    offset 0 -- looks each amount up once
) u
group by reconciliation, side, age_bucket
order by reconciliation, side, oldest desc, age_bucket;
