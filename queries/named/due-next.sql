-- Question: What becomes final unmatched next, and when?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: limit bigint '20' -- at most this many rows
-- Column: reconciliation -- the reconciliation
-- Column: side -- left or right
-- Column: id -- the event without a partner
-- Column: revision -- its revision
-- Column: key -- its join key
-- Column: event_time -- its time
-- Column: deadline -- it becomes final when the low watermark has passed this
-- Column: watermark -- the low watermark now
-- Column: remaining -- event time still to go; null while the watermark is infinite
-- Column: held_by -- the source partitions that hold the watermark
-- Column: status -- provisional when it is shown already
-- Column: attributes -- its attributes
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?limit} \else \set limit '20' \endif
select e.reconciliation, e.side, e.id, e.revision, e.key, e.event_time, e.horizon as deadline,
    e.watermark,
    case when isfinite(e.horizon) and isfinite(e.watermark)
        then e.horizon - e.watermark end as remaining,
    h.held_by, r.status, e.attributes
from :"schema".reconciliations c
join :"schema".events e using (reconciliation)
left join lateral (
    select o.status, o.kind from :"schema".results o
    where e.side = 'left' and o.left_id = e.id and o.shard = e.shard
        and o.reconciliation = e.reconciliation
    union all
    select o.status, o.kind from :"schema".results o
    where e.side = 'right' and o.right_id = e.id and o.shard = e.shard
        and o.reconciliation = e.reconciliation
    limit 1) r on true
left join lateral (
    select string_agg(l.side || '/' || l.source || '/' || l.partition, ', '
        order by l.side, l.source, l.partition) as held_by
    from :"schema".lag l
    where l.reconciliation = e.reconciliation and l.shard = e.shard and l.holds) h on true
where e.live and not e.deleted and e.event_time is not null
    and c.join_kind in (e.side, 'full')
    and r.kind is distinct from 'pair'
    and (:'reconciliation' = '' or e.reconciliation = :'reconciliation')
order by e.horizon, e.reconciliation, e.side, e.id
limit :'limit';
