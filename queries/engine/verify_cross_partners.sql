-- Unmatched rows beside a pair of the same revision of the event. See verify_cross_serving.
with pair as materialized (
    select * from :"schema".match
    where generation_id = $1::integer and shard = $2::integer and status = 'matched'
        and $3::timestamptz is not null
), lone as materialized (
    select * from :"schema".match
    where generation_id = $1::integer and shard = $2::integer
        and (status = 'provisional' or status = 'final' and $4::boolean)
)
select 'match', encode(o.match_id, 'hex'), 'it is ' || o.status || ', but pair '
    || encode(p.match_id, 'hex') || ' is active'
from lone o
join pair p on p.left_id = o.left_id and p.left_revision = o.left_revision
where o.kind = 'left_only'
union all
select 'match', encode(o.match_id, 'hex'), 'it is ' || o.status || ', but pair '
    || encode(p.match_id, 'hex') || ' is active'
from lone o
join pair p on p.right_id = o.right_id and p.right_revision = o.right_revision
where o.kind = 'right_only'
