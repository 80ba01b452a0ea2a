-- Numbers the transitions of the epoch $3 that have numbers from $4 on, from $5 on.
update :"schema".match_transition set ordinal = ordinal - $4::integer + $5::integer
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
    and ordinal >= $4::integer
