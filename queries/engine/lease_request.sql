-- Asks the worker $4 that runs a shard to hand it over to the worker $3. It changes nothing when
-- the shard has another holder by now, nobody runs it, or somebody else asks for it already.
update :"schema".shard set requested_by = $3::text
where generation_id = $1::integer and shard = $2::integer and worker = $4::text
    and attempt_id is not null and lease_until > clock_timestamp() and requested_by is null
