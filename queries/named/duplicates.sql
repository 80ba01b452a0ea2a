-- Question: Which events say the same under different ids, and how many records were repeated?
--   Looks at the newest revisions whose buffer rows are kept.
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: time same|any 'same' -- whether the event times must be the same too
-- Parameter: limit bigint '100' -- at most this many groups of equal events
-- Column: reconciliation -- the reconciliation
-- Column: what -- equal events: one key and content under several ids; dropped records: the same
--   revision with the same content delivered again
-- Column: side -- left or right; null where an epoch that dropped records read both
-- Column: sources -- the sources of the events; for dropped records those that were read in the
--   epochs that dropped them
-- Column: key -- the join key the events share
-- Column: count -- events in the group, or records dropped
-- Column: ids -- their ids, the first 20
-- Column: first_time -- earliest event time, or begin of the first epoch that dropped one
-- Column: last_time -- latest event time, or begin of the last epoch that dropped one
-- Column: attributes -- the attributes they share
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?time} \else \set time 'same' \endif
\if :{?limit} \else \set limit '100' \endif
with event as not materialized (
    select reconciliation, side, source, key, id, event_time, attributes::text as attributes,
        case when :'time' = 'same' then event_time end as same_time
    from :"schema".events
    where newest and not deleted
        and (:'reconciliation' = '' or reconciliation = :'reconciliation')
), repeated as (
    select reconciliation, side, key, attributes, same_time
    from event
    group by reconciliation, side, key, attributes, same_time
    having min(id) <> max(id)
), equal as (
    select e.reconciliation, 'equal events' as what, e.side,
        string_agg(distinct e.source, ', ' order by e.source) as sources, e.key,
        count(distinct e.id) as count, array_agg(distinct e.id order by e.id) as ids,
        min(e.event_time) as first_time, max(e.event_time) as last_time, e.attributes
    from event e
    join repeated r on r.reconciliation = e.reconciliation and r.side = e.side and r.key = e.key
        and r.attributes = e.attributes and r.same_time is not distinct from e.same_time
    group by e.reconciliation, e.side, e.key, e.attributes, e.same_time
    order by count(distinct e.id) desc, e.reconciliation, e.side, e.key, min(e.event_time),
        e.attributes
    limit :'limit'
), dropped as (
    select e.reconciliation, e.duplicate, e.started_at,
        (select case when min(p.side) = max(p.side) then min(p.side) end
         from jsonb_to_recordset(e.sources) as p (side text, "from" text, "to" text)
         where p."from" is distinct from p."to") as side,
        (select string_agg(distinct p.source, ', ' order by p.source)
         from jsonb_to_recordset(e.sources) as p (source text, "from" text, "to" text)
         where p."from" is distinct from p."to") as sources
    from :"schema".epochs e
    where e.duplicate > 0 and e.status = 'committed'
        and (:'reconciliation' = '' or e.reconciliation = :'reconciliation')
), answer as (
    select 1 as place, * from equal
    union all
    select 2, reconciliation, 'dropped records', side, sources, null, sum(duplicate)::bigint, null,
        min(started_at), max(started_at), null
    from dropped
    group by reconciliation, side, sources
)
select reconciliation, what, side, sources, key, count, ids[1:20] as ids, first_time, last_time,
    attributes::json as attributes
from answer a
order by place, count desc, reconciliation, side, sources, key, first_time, a.attributes;
