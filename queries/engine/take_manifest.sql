-- What the manifest of an epoch says of the buffer, and its digest. No row before the first.
select buffered, buffer_digest, digest from :"schema".epoch
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
