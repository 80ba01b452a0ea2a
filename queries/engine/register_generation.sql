-- Creates the first generation of a reconciliation with its shards, and serves it. Returns its
-- number.
with created as (
    insert into :"schema".generation
        (reconciliation, rule_version, rule, shards, status, promoted_epoch)
    values ($1::text, $2::text, $3::jsonb, $4::integer, 'serving', 0)
    returning generation_id, reconciliation
), served as (
    insert into :"schema".serving (reconciliation, generation_id)
    select reconciliation, generation_id from created
), sharded as (
    insert into :"schema".shard (generation_id, shard)
    select generation_id, n from created cross join generate_series(0, $4::integer - 1) as n
)
select generation_id from created
