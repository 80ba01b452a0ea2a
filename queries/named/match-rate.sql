-- Question: How much of each side is matched, per hour or day of event time, by count and amount?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: bucket hour|day 'day' -- the step, in UTC
-- Parameter: attribute text '' -- attribute to sum, a dotted path; no sums when empty
-- Parameter: from timestamptz '-infinity' -- events at this time or later
-- Parameter: to timestamptz 'infinity' -- events before this time
-- Column: reconciliation -- the reconciliation
-- Column: bucket -- begin of the hour or day
-- Column: side -- left or right
-- Column: events -- matched + unmatched + waiting; each event once, however many partners it has
-- Column: matched -- events with a partner
-- Column: unmatched -- events with an unmatched row; null where the join keeps none for the side
-- Column: waiting -- events that wait in the buffer without a result
-- Column: rate -- matched / (matched + unmatched), 4 digits; null where unmatched is
-- Column: amount -- exact sum of the attribute over all of them
-- Column: matched_amount -- the same over the matched ones
-- Column: amount_rate -- matched amount / amount of matched and unmatched, 4 digits
-- Column: unknown -- events without a number there, or whose buffer row is no longer kept
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?bucket} \else \set bucket 'day' \endif
\if :{?attribute} \else \set attribute '' \endif
\if :{?from} \else \set from '-infinity' \endif
\if :{?to} \else \set to 'infinity' \endif
with judged as (
    select distinct r.reconciliation, r.shard, x.side, x.id, x.revision, x.event_time,
        case when r.kind = 'pair' then 'matched' else 'unmatched' end as state
    from :"schema".results r
    cross join lateral (values ('left', r.left_id, r.left_revision, r.left_time),
        ('right', r.right_id, r.right_revision, r.right_time)
    ) as x (side, id, revision, event_time)
    where x.id is not null and x.event_time >= :'from' and x.event_time < :'to'
        and (:'reconciliation' = '' or r.reconciliation = :'reconciliation')
), kept as (
    select reconciliation, shard, side, id, revision, event_time, live,
        case when :'attribute' <> ''
            then :"schema".number_at(attributes, :'attribute') end as amount
    from :"schema".events
    where not deleted and event_time >= :'from' and event_time < :'to'
        and (live or :'attribute' <> '')
        and (:'reconciliation' = '' or reconciliation = :'reconciliation')
), told as (
    select reconciliation, side, coalesce(j.state, 'waiting') as state, k.amount,
        date_trunc(:'bucket', event_time, 'UTC') as bucket
    from judged j
    full join kept k using (reconciliation, shard, side, id, revision, event_time)
    where j.state is not null or k.live
), counted as (
    select reconciliation, bucket, side, count(*) as events,
        count(*) filter (where state = 'matched') as matched,
        count(*) filter (where state = 'unmatched') as unmatched,
        count(*) filter (where state = 'waiting') as waiting,
        sum(amount) as amount,
        sum(amount) filter (where state = 'matched') as matched_amount,
        sum(amount) filter (where state <> 'waiting') as judged_amount,
        case when :'attribute' <> '' then count(*) - count(amount) end as unknown
    from told
    group by reconciliation, bucket, side
)
select t.reconciliation, t.bucket, t.side, t.events, t.matched,
    case when k.kept then t.unmatched end as unmatched,
    t.waiting,
    case when k.kept
        then round(t.matched::numeric / nullif(t.matched + t.unmatched, 0), 4) end as rate,
    t.amount, t.matched_amount,
    case when k.kept
        then round(coalesce(t.matched_amount, 0) / nullif(t.judged_amount, 0), 4)
        end as amount_rate,
    t.unknown
from counted t
join :"schema".reconciliations c using (reconciliation)
cross join lateral (select c.join_kind in (t.side, 'full') as kept) k
order by t.reconciliation, t.bucket, t.side;
