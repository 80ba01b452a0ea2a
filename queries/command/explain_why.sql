-- How the left events $2 and right events $3 of reconciliation $1 stand, a row per shard that
-- knows them.
with asked as (
    select 'left' as side, id from unnest($2::text[]) as l (id)
    union all
    select 'right', id from unnest($3::text[]) as r (id)
)
select a.side, a.id, h.shard,
    coalesce(b.revision, m.revision) as revision,
    b.deleted, b.horizon >= h.watermark as live,
    coalesce(b.key, m.key) as key,
    t.event_time,
    t.event_time - case a.side when 'left' then c.before else c.after end as window_from,
    t.event_time + case a.side when 'left' then c.after else c.before end as window_to,
    coalesce(b.horizon, m.horizon) as deadline,
    h.watermark,
    w.held_by, w.held_since,
    c.join_kind in (a.side, 'full') as keeps_unmatched, c.provisional as policy,
    coalesce(m.partners, 0) as partners, m.only_status, m.horizon as settled
from asked a
join :"schema".reconciliations c on c.reconciliation = $1::text
join :"schema".shard h using (generation_id)
left join lateral (
    select x.revision, x.key, x.event_time, x.deleted, x.horizon from :"schema".buffer x
    where x.generation_id = h.generation_id and x.shard = h.shard and x.side = a.side
        and x.id = a.id and x.retired_epoch is null
    order by x.added_epoch desc limit 1) b on true
left join lateral (
    select count(*) filter (where x.status = 'matched') as partners,
        max(x.status) filter (where x.status in ('provisional', 'final')) as only_status,
        max(case a.side when 'left' then x.left_revision else x.right_revision end) as revision,
        max(x.key) as key, max(case a.side when 'left' then x.left_time else x.right_time end)
            as event_time,
        max(x.horizon) as horizon
    from (select y.* from :"schema".match y
        where a.side = 'left' and y.generation_id = h.generation_id and y.shard = h.shard
            and y.left_id = a.id
        union all
        select y.* from :"schema".match y
        where a.side = 'right' and y.generation_id = h.generation_id and y.shard = h.shard
            and y.right_id = a.id) x
    where x.status in ('matched', 'provisional', 'final')) m on true
cross join lateral (select coalesce(b.event_time, m.event_time) as event_time) t
left join lateral (
    select string_agg(l.side || '/' || l.source || '/' || l.partition, ', '
            order by l.side, l.source, l.partition) as held_by,
        (select min(x.committed_at) from :"schema".epoch x
         where x.generation_id = h.generation_id and x.shard = h.shard
            and x.watermark_after = h.watermark) as held_since
    from :"schema".lag l
    where l.reconciliation = c.reconciliation and l.shard = h.shard and l.holds) w on true
where b.revision is not null or m.revision is not null
order by a.side, h.shard
