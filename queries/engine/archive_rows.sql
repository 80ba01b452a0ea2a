-- Buffer rows that are live at the epoch $3 with the watermark $4, in the order of the primary key
-- after the one given, a page at a time. An epoch that is committed meanwhile changes none of it.
select
    generation_id, shard, side, id, revision, key, event_time, deleted, attributes, horizon,
    source, partition, position, added_epoch, row_hash
from :"schema".buffer
where generation_id = $1::integer and shard = $2::integer
    and (generation_id, shard, side, id, added_epoch)
        > ($1::integer, $2::integer, $5::text, $6::text, $7::bigint)
    and added_epoch <= $3::bigint and (retired_epoch is null or retired_epoch > $3::bigint)
    and horizon >= $4::timestamptz
order by generation_id, shard, side, id, added_epoch
limit 20000
