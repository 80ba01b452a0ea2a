-- Notes on the attempt that it fell back to an archive.
update :"schema".attempt set restored_epoch = $4::bigint, restored_from = 'archive'
where generation_id = $1::integer and shard = $2::integer and attempt_id = $3::uuid
