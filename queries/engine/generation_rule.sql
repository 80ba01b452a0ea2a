-- The top-level keys in which a rule differs from the one that a generation of the reconciliation
-- already has under the same version, and that generation; no row when none differs.
select g.generation_id, d.keys
from :"schema".generation g
cross join lateral (select array(
    select k.key from jsonb_object_keys(g.rule || $3::jsonb) as k (key)
    where g.rule -> k.key is distinct from $3::jsonb -> k.key
    order by k.key) as keys) d
where g.reconciliation = $1::text and g.rule_version = $2::text and g.status <> 'purged'
    and d.keys <> '{}'
order by g.generation_id
limit 1
