-- The serving generation of a reconciliation compared with a rule: its number, version, number of
-- shards, and the top-level keys in which its rule differs. No row before the first registration.
select
    g.generation_id,
    g.rule_version,
    g.shards,
    array(
        select k.key from jsonb_object_keys(g.rule || $2::jsonb) as k (key)
        where g.rule -> k.key is distinct from $2::jsonb -> k.key
        order by k.key) as changed
from :"schema".serving s
join :"schema".generation g using (generation_id)
where s.reconciliation = $1::text
