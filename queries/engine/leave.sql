-- Ends an attempt with its outcome, and releases the lease if the attempt still holds it: to the
-- worker that asked for the shard, which has as long as a lease to take it, when the shard is handed
-- over ($5); else to whoever comes first. Returns nothing.
with freed as (
    update :"schema".shard
    set attempt_id = null, requested_by = null,
        worker = case when $5::boolean then requested_by end,
        lease_until = case when $5::boolean and requested_by is not null
            then clock_timestamp() + $6::bigint * interval '1 microsecond'
            else '-infinity' end
    where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
)
update :"schema".attempt set ended_at = clock_timestamp(), outcome = $4::text
where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
