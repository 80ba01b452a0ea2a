-- Does for a step back to epoch $8 what epoch_fence does for an epoch, unless rows that it needs may
-- have been purged. A purge that has not begun is barred by the lock until the step is done, and
-- then by what it finds.
with moved as (
    update :"schema".shard
    set epoch = $5::bigint, watermark = $6::timestamptz,
        lease_until = clock_timestamp() + $7::bigint * interval '1 microsecond',
        purged_epoch = least(purged_epoch, $8::bigint)
    where generation_id = $1::integer and shard = $2::integer
        and epoch = $4::bigint and fencing_token = $3::bigint
        and (purged_epoch <= $8::bigint or purged_epoch > $4::bigint)
    returning 1
)
select 1 / count(*) from moved
