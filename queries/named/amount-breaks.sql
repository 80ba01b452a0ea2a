-- Question: How do the compared fields of pairs differ: over, under, within tolerance, how much?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: field text '' -- only this field, by its left name; all when empty
-- Column: reconciliation -- the reconciliation
-- Column: field -- compared field; one that is equal in every pair has no row
-- Column: pairs -- pairs compared
-- Column: equal -- pairs where it is equal
-- Column: within -- pairs where it differs within tolerance
-- Column: over -- breaks where the right side is larger
-- Column: under -- breaks where the right side is smaller
-- Column: other -- breaks that are not between two numbers
-- Column: net -- exact sum of right minus left, within tolerance and breaks
-- Column: p50 -- half of the numeric breaks are this large or smaller, without sign
-- Column: p90 -- the same for 90 %
-- Column: p99 -- the same for 99 %
-- Column: largest -- the largest numeric break, right minus left
-- Column: largest_match_id -- its pair; the first by identity where several are as large
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?field} \else \set field '' \endif
with compared as (
    select reconciliation, count(*) as pairs
    from :"schema".results
    where verdict is not null
        and (:'reconciliation' = '' or reconciliation = :'reconciliation')
    group by reconciliation
), difference as (
    select r.reconciliation, r.match_id, d.field, d.difference, d.within
    from :"schema".results r
    cross join lateral jsonb_to_recordset(r.differences)
        as d (field text, difference numeric, within boolean)
    where r.differences is not null and (:'field' = '' or d.field = :'field')
        and (:'reconciliation' = '' or r.reconciliation = :'reconciliation')
), summed as (
    select reconciliation, field, count(*) as unequal,
        count(*) filter (where within) as within,
        count(*) filter (where not within and difference > 0) as over,
        count(*) filter (where not within and difference < 0) as under,
        count(*) filter (where not within and difference is null) as other,
        sum(difference) as net,
        percentile_disc(array[0.5, 0.9, 0.99]) within group (order by abs(difference))
            filter (where not within) as size,
        max(abs(difference)) filter (where not within) as largest
    from difference
    group by reconciliation, field
)
select s.reconciliation, s.field, c.pairs, c.pairs - s.unequal as equal, s.within, s.over, s.under,
    s.other, s.net, s.size[1] as p50, s.size[2] as p90, s.size[3] as p99,
    l.difference as largest, l.match_id as largest_match_id
from summed s
join compared c using (reconciliation)
left join lateral (
    select d.difference, d.match_id from difference d
    where d.reconciliation = s.reconciliation and d.field = s.field and not d.within
        and abs(d.difference) = s.largest
    order by d.match_id limit 1) l on true
order by s.reconciliation, s.field;
