-- The generations of a reconciliation, the newest last: those of a status where one is given.
select
    g.generation_id as generation, g.status, g.kind, g.rule_version, g.shards, g.base,
    g.interval_from, g.interval_to,
    date_trunc('second', g.created_at) as created_at,
    date_trunc('second', g.status_at) as status_at,
    h.epoch, h.watermark,
    case when g.status = 'candidate' then h.watermark < (g.catch_up ->> 'watermark')::timestamptz
        end as building,
    v.passed as validated, v.unexplained, v.accepted_by
from :"schema".generation g
left join lateral (
    select max(x.epoch) as epoch, min(x.watermark) as watermark from :"schema".shard x
    where x.generation_id = g.generation_id) h on true
left join lateral (
    select x.passed, x.unexplained, x.accepted_by from :"schema".validation x
    where x.generation_id = g.generation_id order by x.number desc limit 1) v on true
where g.reconciliation = $1::text and ($2::text = '' or g.status = $2::text)
order by g.generation_id
