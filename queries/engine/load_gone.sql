-- The active results without a live member of events that have left the buffer; each once. The
-- look-ups are written as in fetch.
select distinct on (m.match_id)
    m.key, m.horizon, m.match_id, m.kind, m.status, m.left_id, m.left_revision, m.right_id,
    m.right_revision, m.left_time, m.right_time, m.verdict, m.differences, m.changed_epoch,
    m.row_hash
from unnest($4::text[], $5::text[]) as g (side, id)
cross join lateral (
    select y.* from :"schema".match y
    where g.side = 'left' and y.left_id = g.id and y.horizon < $3::timestamptz
        and y.status in ('matched', 'provisional', 'final')
        and y.generation_id is not distinct from $1::integer
        and y.shard is not distinct from $2::integer
    union all
    select y.* from :"schema".match y
    where g.side = 'right' and y.right_id = g.id and y.horizon < $3::timestamptz
        and y.status in ('matched', 'provisional', 'final')
        and y.generation_id is not distinct from $1::integer
        and y.shard is not distinct from $2::integer
    offset 0) m
order by m.match_id
