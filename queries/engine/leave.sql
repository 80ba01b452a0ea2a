-- Ends an attempt with its outcome, and lets the shard go if the attempt still holds it.
with freed as (
    update :"schema".shard set attempt_id = null, worker = null
    where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
)
update :"schema".attempt set ended_at = clock_timestamp(), outcome = $4::text
where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
