-- Takes the shard again for the attempt that holds it, under a higher token of its choice, and
-- extends its lease. Waits for a transaction of it that is still under way, and bars one that has
-- not begun. Returns the epoch; no row when the shard has another holder or a higher token.
with held as (
    update :"schema".shard
    set fencing_token = $4::bigint,
        lease_until = clock_timestamp() + $5::bigint * interval '1 microsecond'
    where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
        and fencing_token < $4::bigint
    returning epoch
), noted as (
    update :"schema".attempt set fencing_token = $4::bigint
    where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
        and exists (select from held)
)
select epoch from held
