-- Locks a shard's row until the transaction ends; waits for an epoch in its commit.
select epoch from :"schema".shard
where generation_id = $1::integer and shard = $2::integer
for update
