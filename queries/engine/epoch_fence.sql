-- Moves the shard's epoch and watermark, and by that locks its row, if epoch and token are the
-- ones this worker holds, and extends the lease. If they are not it fails with a division by zero,
-- so that the statements sent behind it in the same round trip fail as well.
with moved as (
    update :"schema".shard
    set epoch = $5::bigint, watermark = $6::timestamptz,
        lease_until = clock_timestamp() + $7::bigint * interval '1 microsecond'
    where generation_id = $1::integer and shard = $2::integer
        and epoch = $4::bigint and fencing_token = $3::bigint
    returning 1
)
select 1 / count(*) from moved
