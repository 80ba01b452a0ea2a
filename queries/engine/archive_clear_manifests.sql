-- Removes the manifests from $3 to $4, to be followed by those of an archive.
delete from :"schema".epoch
where generation_id = $1::integer and shard = $2::integer
    and epoch >= $3::bigint and epoch <= $4::bigint
