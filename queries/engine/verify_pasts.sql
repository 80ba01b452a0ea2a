-- All transitions and all results beside each other, in the order of identities and epochs. The
-- columns of the one that is missing are null.
select
    t.epoch, t.ordinal, bucket, match_id, t.from_status, t.to_status, t.reason, m.status, m.opened_epoch,
    m.changed_epoch
from (
    select * from :"schema".match_transition
    where generation_id = $1::integer and shard = $2::integer) t
full join (
    select bucket, match_id, status, opened_epoch, changed_epoch from :"schema".match
    where generation_id = $1::integer and shard = $2::integer) m using (bucket, match_id)
order by match_id, bucket, t.epoch, t.ordinal
