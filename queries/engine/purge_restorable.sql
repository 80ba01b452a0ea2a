-- The oldest epoch of a shard that can still be gone back to, 0 while all can.
select purged_epoch from :"schema".shard
where generation_id = $1::integer and shard = $2::integer
