-- Question: How long does a match take, in event time and in arrival time?
--   After a full rebuild arrival is when the rebuild read the events again.
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: from timestamptz '-infinity' -- pairs whose left event is at this time or later
-- Parameter: to timestamptz 'infinity' -- pairs whose left event is before this time
-- Column: reconciliation -- the reconciliation
-- Column: measure -- event time: between the members' times; arrival: from the commit that took the
--   first member to the commit that published the pair
-- Column: pairs -- pairs measured
-- Column: unknown -- pairs whose arrival is no longer known: buffer row or manifest purged
-- Column: p50 -- half of the pairs took this long or less; a value that occurred
-- Column: p90 -- the same for 90 %
-- Column: p99 -- the same for 99 %
-- Column: max -- the longest
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?from} \else \set from '-infinity' \endif
\if :{?to} \else \set to 'infinity' \endif
with pair as (
    select reconciliation, shard, left_id, left_revision, left_time, right_id, right_revision,
        right_time, opened_epoch
    from :"schema".results
    where kind = 'pair' and left_time >= :'from' and left_time < :'to'
        and (:'reconciliation' = '' or reconciliation = :'reconciliation')
), measured as (
    select p.reconciliation,
        greatest(p.right_time - p.left_time, p.left_time - p.right_time) as apart,
        case when l.arrived_at is not null and r.arrived_at is not null
            then o.committed_at - least(l.arrived_at, r.arrived_at) end as took
    from pair p
    left join :"schema".events l on l.reconciliation = p.reconciliation and l.shard = p.shard
        and l.side = 'left' and l.id = p.left_id and l.revision = p.left_revision
        and l.event_time = p.left_time
    left join :"schema".events r on r.reconciliation = p.reconciliation and r.shard = p.shard
        and r.side = 'right' and r.id = p.right_id and r.revision = p.right_revision
        and r.event_time = p.right_time
    left join :"schema".epochs o on o.reconciliation = p.reconciliation and o.shard = p.shard
        and o.epoch = p.opened_epoch
), summed as (
    select reconciliation, count(*) as pairs, count(took) as arrivals,
        percentile_disc(array[0.5, 0.9, 0.99, 1]) within group (order by apart) as apart,
        percentile_disc(array[0.5, 0.9, 0.99, 1]) within group (order by took) as took
    from measured
    group by reconciliation
)
select reconciliation, m.measure, m.pairs, s.pairs - m.pairs as unknown,
    m.v[1] as p50, m.v[2] as p90, m.v[3] as p99, m.v[4] as max
from summed s
cross join lateral (values (1, 'event time', s.pairs, s.apart), (2, 'arrival', s.arrivals, s.took)
) as m (place, measure, pairs, v)
order by reconciliation, m.place;
