-- Creates a candidate with its shards. Returns its number.
with created as (
    insert into :"schema".generation (
        reconciliation, rule_version, rule, shards, kind, status, base, interval_from, interval_to,
        catch_up)
    values (
        $1::text, $2::text, $3::jsonb, $4::integer, $5::text, 'candidate', $6::integer,
        $7::timestamptz, $8::timestamptz, $9::json)
    returning generation_id
), sharded as (
    insert into :"schema".shard (generation_id, shard)
    select generation_id, n from created cross join generate_series(0, $4::integer - 1) as n
)
select generation_id from created
