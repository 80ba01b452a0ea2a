-- All active results of the live buffer rows of a shard and of the partners in them. A result's
-- horizon is the later one of its members', so those of live rows are found by it.
with near as materialized (
    select * from :"schema".match
    where generation_id = $1::integer and shard = $2::integer
        and horizon >= $3::timestamptz and status in ('matched', 'provisional', 'final')
), gone as (
    select left_id, null::text as right_id from near
    where left_id is not null and not exists (
        select from :"schema".buffer b
        where b.generation_id = $1::integer and b.shard = $2::integer and b.side = 'left'
            and b.id = near.left_id and b.retired_epoch is null and b.horizon >= $3::timestamptz)
    union
    select null, right_id from near
    where right_id is not null and not exists (
        select from :"schema".buffer b
        where b.generation_id = $1::integer and b.shard = $2::integer and b.side = 'right'
            and b.id = near.right_id and b.retired_epoch is null
            and b.horizon >= $3::timestamptz)
)
select
    key, horizon, match_id, kind, status, left_id, left_revision, right_id, right_revision,
    left_time, right_time, verdict, differences::text
from near
union all
select
    m.key, m.horizon, m.match_id, m.kind, m.status, m.left_id, m.left_revision, m.right_id,
    m.right_revision, m.left_time, m.right_time, m.verdict, m.differences::text
from (
    select distinct on (x.match_id) x.*
    from gone g
    cross join lateral (
        select y.* from :"schema".match y
        where y.left_id = g.left_id
            and y.generation_id is not distinct from $1::integer
            and y.shard is not distinct from $2::integer
            and y.horizon < $3::timestamptz and y.status in ('matched', 'provisional', 'final')
        union all
        select y.* from :"schema".match y
        where y.right_id = g.right_id
            and y.generation_id is not distinct from $1::integer
            and y.shard is not distinct from $2::integer
            and y.horizon < $3::timestamptz and y.status in ('matched', 'provisional', 'final')
        offset 0) x) m
