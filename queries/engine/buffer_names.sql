-- The ids and keys of the rows of the buffer in the order of side and id after the ones given, a page at
-- a time.
select side, id, key from :"schema".buffer
where generation_id = $1::integer and shard = $2::integer
    and (generation_id, shard, side, id) > ($1::integer, $2::integer, $3::text, $4::text)
    and retired_epoch is null
order by generation_id, shard, side, id
limit 50000
