-- One row per shard of reconciliation $1. The rate is taken over its newest 20 epochs.
select h.shard, h.epoch, h.watermark,
    date_trunc('second', case when isfinite(h.watermark) then now() - h.watermark end) as age,
    w.held_by, w.held_since, e.buffered, r.events_per_second, e.committed_at as last_epoch_at,
    h.worker,
    h.fencing_token as token, h.attempt_id as attempt, a.started_at as attempt_since,
    coalesce(a.outcome, case
        when a.attempt_id is null then null
        when h.lease_until > clock_timestamp() then 'running'
        else 'killed or paused: its lease ran out' end) as attempt_state,
    case when h.lease_until > clock_timestamp() then h.lease_until end as lease_until,
    h.requested_by,
    (select count(*) from :"schema".correction c
     where c.generation_id = h.generation_id and c.shard = h.shard and c.status = 'open')
        as open_corrections,
    (select count(*) from :"schema".quarantine q
     where q.generation_id = h.generation_id and q.shard = h.shard and q.status = 'open')
        as open_quarantine,
    (select count(*) from :"schema".quarantine q
     where q.generation_id = h.generation_id and q.shard = h.shard and q.status = 'released')
        as released_quarantine,
    s.sources
from :"schema".serving v
join :"schema".shard h using (generation_id)
left join :"schema".attempt a using (generation_id, shard, attempt_id)
left join :"schema".epoch e using (generation_id, shard, epoch)
left join lateral (
    select string_agg(l.side || '/' || l.source || '/' || l.partition, ', '
            order by l.side, l.source, l.partition) filter (where l.holds) as held_by,
        (select min(x.committed_at) from :"schema".epoch x
         where x.generation_id = h.generation_id and x.shard = h.shard
            and x.watermark_after = h.watermark) as held_since
    from :"schema".lag l
    where l.reconciliation = v.reconciliation and l.shard = h.shard) w on true
left join lateral (
    select round(sum(n.read) / nullif(extract(epoch from
        max(n.committed_at) - min(n.started_at))::numeric, 0), 1) as events_per_second
    from (select x.read, x.started_at, x.committed_at from :"schema".epoch x
        where x.generation_id = h.generation_id and x.shard = h.shard
        order by x.epoch desc limit 20) n) r on true
left join lateral (
    select jsonb_agg(jsonb_build_object('side', l.side, 'source', l.source,
        'partition', l.partition, 'position', l.position, 'watermark', l.watermark,
        'holds', l.holds, 'behind', l.behind, 'idle', l.idle, 'idle_since', l.idle_since,
        'last_event_at', l.last_event_at) order by l.side, l.source, l.partition) as sources
    from :"schema".lag l
    where l.reconciliation = v.reconciliation and l.shard = h.shard) s on true
where v.reconciliation = $1::text
order by h.shard
