-- Notes in the attempt to which archived epoch it went back, and why.
update :"schema".attempt
set restored_epoch = $4::bigint, restored_from = 'archive',
    damage = coalesce(damage, '[]'::jsonb) || $5::jsonb
where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
