-- How many rows the buffer held after an epoch, by its manifest. No row before the first.
select buffered from :"schema".epoch
where generation_id = $1::integer and shard = $2::integer and epoch = $3::bigint
