-- Near misses of the left events $2 and right events $3 of reconciliation $1: events of the other
-- side with the same key just outside the window, as far as their buffer rows are kept; the ten
-- nearest.
with asked as (
    select 'left' as side, id from unnest($2::text[]) as l (id)
    union all
    select 'right', id from unnest($3::text[]) as r (id)
)
select e.side, e.id, e.revision, e.event_time, o.id as other_id, o.revision as other_revision,
    o.event_time as other_time,
    case when o.event_time < w.first then w.first - o.event_time
        else o.event_time - w.last end::text as outside_by,
    case when o.event_time < w.first then 'too early' else 'too late' end as how,
    o.source, o.partition, o.position
from :"schema".reconciliations c
cross join asked a
join :"schema".events e on e.reconciliation = c.reconciliation and e.side = a.side and e.id = a.id
join :"schema".shard h on h.generation_id = c.generation_id and h.shard = e.shard
join :"schema".buffer o on o.generation_id = h.generation_id and o.shard = h.shard
    and o.key = e.key and o.side <> e.side
cross join lateral (select
    e.event_time - case e.side when 'left' then c.before else c.after end as first,
    e.event_time + case e.side when 'left' then c.after else c.before end as last) w
where c.reconciliation = $1::text and e.newest and not e.deleted
    and o.retired_epoch is null and not o.deleted
    and (o.event_time < w.first or o.event_time > w.last)
order by case when o.event_time < w.first then w.first - o.event_time
    else o.event_time - w.last end, o.side, o.id
limit 10
