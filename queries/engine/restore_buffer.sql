-- Makes the buffer what it was after epoch $3: what was added since goes, what was replaced since is
-- live again.
with gone as (
    delete from :"schema".buffer
    where generation_id = $1::integer and shard = $2::integer and added_epoch > $3::bigint
)
update :"schema".buffer set retired_epoch = null
where generation_id = $1::integer and shard = $2::integer
    and added_epoch <= $3::bigint and retired_epoch > $3::bigint
