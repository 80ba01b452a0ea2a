-- The epoch and the fencing token that a shard stands at. No row when there is no such shard.
select epoch, fencing_token from :"schema".shard
where generation_id = $1::integer and shard = $2::integer
