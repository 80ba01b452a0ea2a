-- Transitions of the results of the left events $2 and right events $3 of reconciliation $1; only
-- of the identity $4 (hex) when it is not empty.
with found as (
    select * from :"schema".result_history
    where reconciliation = $1::text and left_id = any ($2::text[])
        and epoch between opened_epoch and changed_epoch
    union
    select * from :"schema".result_history
    where reconciliation = $1::text and right_id = any ($3::text[])
        and epoch between opened_epoch and changed_epoch
)
select at, shard, epoch, ordinal, kind, left_id, left_revision, right_id, right_revision,
    from_status, to_status, reason, match_id
from found
where $4::text = '' or match_id = $4::text
order by at nulls first, shard, epoch, ordinal
