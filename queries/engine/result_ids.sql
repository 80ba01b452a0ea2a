-- The members of results in the order of the primary key after the one given, a page at a time.
select bucket, match_id, left_id, right_id, status from :"schema".match
where generation_id = $1::integer and shard = $2::integer
    and (generation_id, shard, bucket, match_id)
        > ($1::integer, $2::integer, $3::integer, $4::bytea)
order by generation_id, shard, bucket, match_id
limit 50000
