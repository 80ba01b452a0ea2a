-- The status of a quarantined record; no row when there is none.
select status from :"schema".quarantine
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
    and ordinal = $4::integer
