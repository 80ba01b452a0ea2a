-- Events of which base $1 serves a revision outside [$3, $4), where candidate $2 has another one: one
-- line each, at most $5. Merged they would be served as both.
with served as (
    select s.side, s.id, s.revision, s.event_time
    from :"schema".match m
    cross join lateral (values ('left', m.left_id, m.left_revision, m.left_time),
        ('right', m.right_id, m.right_revision, m.right_time)
    ) as s (side, id, revision, event_time)
    where m.generation_id = $1::integer and m.status in ('matched', 'provisional', 'final')
        and s.id is not null
        and (m.left_time >= $3::timestamptz and m.left_time < $4::timestamptz) is not true
        and (m.right_time >= $3::timestamptz and m.right_time < $4::timestamptz) is not true
), merged as (
    select s.side, s.id, s.revision
    from :"schema".match m
    cross join lateral (values ('left', m.left_id, m.left_revision),
        ('right', m.right_id, m.right_revision)) as s (side, id, revision)
    where m.generation_id = $2::integer and m.status in ('matched', 'provisional', 'final')
        and s.id is not null
        and (m.left_time >= $3::timestamptz and m.left_time < $4::timestamptz
            or m.right_time >= $3::timestamptz and m.right_time < $4::timestamptz)
)
select distinct format('the %s event %s is served as revision %s at %s, outside the interval, which '
    'has its revision %s; begin one that has both', side, id, s.revision, s.event_time, g.revision)
from merged g
join served s using (side, id)
where s.revision <> g.revision
order by 1
limit $5::integer
