-- Result rows of every status in the order of the primary key after the one given, a page at a time.
select
    generation_id, shard, bucket, match_id, kind, left_id, left_revision, right_id, right_revision,
    key, left_time, right_time, horizon, verdict, differences, status, opened_epoch, changed_epoch,
    row_hash
from :"schema".match
where generation_id = $1::integer and shard = $2::integer
    and (generation_id, shard, bucket, match_id)
        > ($1::integer, $2::integer, $3::integer, $4::bytea)
order by generation_id, shard, bucket, match_id
limit 20000
