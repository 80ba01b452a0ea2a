-- Which attempt committed an epoch. No row when the epoch was not committed.
select attempt_id from :"schema".epoch
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
