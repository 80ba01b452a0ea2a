-- The generations of a reconciliation, the newest last.
select
    g.generation_id, g.reconciliation, g.rule_version, g.shards, g.kind, g.status, g.created_at,
    g.status_at, coalesce(g.base, 0), g.interval_from, g.interval_to, g.catch_up
from :"schema".generation g
where g.reconciliation = $1::text
order by g.generation_id
