-- Whether the generation should have this shard, and the newest epoch of it that counts.
select
    exists (
        select from :"schema".generation
        where generation_id = $1::integer and shards > $2::integer),
    coalesce((
        select max(epoch) from :"schema".epoch
        where generation_id = $1::integer and shard = $2::integer and status = 'committed'), 0)
