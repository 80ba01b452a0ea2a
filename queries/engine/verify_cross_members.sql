-- Active results that live work can still change whose members are not as they say: a live row of
-- the buffer, or one that has left it, while the other one lives. See verify_cross_serving.
with live as materialized (
    select side, id, revision, key, event_time, deleted from :"schema".buffer
    where generation_id = $1::integer and shard = $2::integer and retired_epoch is null
        and horizon >= $3::timestamptz
), active as materialized (
    select * from :"schema".match
    where generation_id = $1::integer and shard = $2::integer
        and status in ('matched', 'provisional', 'final')
        and (horizon >= $3::timestamptz or status = 'provisional') and $4::boolean is not null
), seen as (
    select
        a.*,
        l.id is not null as has_left, r.id is not null as has_right,
        l.id is not null and (l.deleted or l.revision <> a.left_revision
            or l.key <> a.key or l.event_time is distinct from a.left_time) as other_left,
        r.id is not null and (r.deleted or r.revision <> a.right_revision
            or r.key <> a.key or r.event_time is distinct from a.right_time) as other_right
    from active a
    left join live l on l.side = 'left' and l.id = a.left_id
    left join live r on r.side = 'right' and r.id = a.right_id
)
select 'match', encode(match_id, 'hex'), case
    when horizon < $3::timestamptz then 'it is provisional, but its horizon has passed'
    when status = 'final' then 'it is final, but its horizon has not passed'
    when other_left then 'its left event is another one in the buffer'
    when other_right then 'its right event is another one in the buffer'
    else 'no member of it is in the buffer, but its horizon has not passed' end
from seen
where horizon < $3::timestamptz or status = 'final' or other_left or other_right
    or not (has_left or has_right)
