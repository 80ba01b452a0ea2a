-- The members of results in the order of identity after the one given, a page at a time.
select match_id, left_id, right_id, status from :"schema".match
where generation_id = $1::integer and shard = $2::integer
    and (generation_id, shard, match_id) > ($1::integer, $2::integer, $3::bytea)
order by generation_id, shard, match_id
limit 50000
