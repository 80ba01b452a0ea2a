-- Removes the buffer rows of a shard, to be followed by those of an archive; nothing before the
-- epoch $3, which writes them, can be gone back to.
with moved as (
    update :"schema".shard set purged_epoch = $3::bigint
    where generation_id = $1::integer and shard = $2::integer
)
delete from :"schema".buffer where generation_id = $1::integer and shard = $2::integer
