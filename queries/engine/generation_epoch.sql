-- Moves a shard that is locked to an epoch.
update :"schema".shard set epoch = $3::bigint
where generation_id = $1::integer and shard = $2::integer
