-- Which attempt committed an epoch, and the digest of its manifest. No row when the epoch was not
-- committed.
select attempt_id, digest from :"schema".epoch
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
