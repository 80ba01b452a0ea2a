-- Transitions of the results of the left events $2 and right events $3 of reconciliation $1; only
-- of the identity $4 (hex) when it is not empty. Those of a rebuild name the generation that was
-- promoted: the interval merged with that epoch, else the one that has served since.
with found as (
    select * from :"schema".result_history
    where reconciliation = $1::text and left_id = any ($2::text[])
        and epoch between opened_epoch and changed_epoch
    union
    select * from :"schema".result_history
    where reconciliation = $1::text and right_id = any ($3::text[])
        and epoch between opened_epoch and changed_epoch
)
select f.at, f.generation_id as generation, f.shard, f.epoch, f.ordinal, f.kind, f.left_id,
    f.left_revision, f.right_id, f.right_revision, f.from_status, f.to_status, f.reason,
    case when f.reason = 'rebuild' then coalesce((
        select g.generation_id from :"schema".generation g
        where g.base = f.generation_id and g.kind = 'interval' and g.promoted_epoch = f.epoch),
        f.generation_id) end as rebuilt_by,
    f.match_id
from found f
where $4::text = '' or f.match_id = $4::text
order by f.at nulls first, f.shard, f.epoch, f.ordinal
