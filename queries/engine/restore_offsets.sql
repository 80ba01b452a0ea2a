-- Forgets how far the source partitions were read; what the manifest says of them is written next.
delete from :"schema".source_offset
where generation_id = $1::integer and shard = $2::integer
