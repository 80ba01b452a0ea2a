-- Removes the source offsets of a shard, to be followed by those of an archive.
delete from :"schema".source_offset where generation_id = $1::integer and shard = $2::integer
