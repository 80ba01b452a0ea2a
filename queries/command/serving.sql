-- The serving generation of reconciliation $1 and its rule.
select generation_id, rule_version, join_kind,
    (extract(epoch from before) * 1000000)::bigint as before_us,
    (extract(epoch from after) * 1000000)::bigint as after_us,
    (extract(epoch from lateness) * 1000000)::bigint as lateness_us,
    provisional, shards, since
from :"schema".reconciliations
where reconciliation = $1::text
