-- All transitions in the order of epochs and identities, with the hash of what the result says, null
-- where there is no row.
select
    t.epoch, t.ordinal, t.bucket, t.match_id, t.from_status, t.to_status, t.reason,
    substr(m.row_hash, 1, 16)
from (
    select * from :"schema".match_transition
    where generation_id = $1::integer and shard = $2::integer) t
left join (
    select bucket, match_id, row_hash from :"schema".match
    where generation_id = $1::integer and shard = $2::integer) m using (bucket, match_id)
order by t.epoch, t.match_id
