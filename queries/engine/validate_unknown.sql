-- Of a candidate $2 with another rule than its base $1: how many events of each side are in a result
-- of the base, of those that validate_compare looks at with the same $3, $4 and $5, and unknown to
-- the candidate, which would have a result for each or hold it. Only of sides whose unmatched events
-- its rule keeps; less those that its rule may have sent to the quarantine.
with wanted as (
    select distinct s.side, s.id
    from :"schema".match m
    join :"schema".generation g on g.generation_id = $2::integer
    cross join lateral (values ('left', m.left_id), ('right', m.right_id)) as s (side, id)
    where m.generation_id = $1::integer and m.status in ('matched', 'provisional', 'final')
        and ($3::timestamptz is null or m.horizon < $3::timestamptz)
        and ($4::timestamptz is null or m.left_time >= $4::timestamptz
                and m.left_time < $5::timestamptz
            or m.right_time >= $4::timestamptz and m.right_time < $5::timestamptz)
        and s.id is not null and g.rule ->> 'join' in ('full', s.side)
), known as (
    select 'left' as side, left_id as id from :"schema".match
    where generation_id = $2::integer and left_id is not null
    union all
    select 'right', right_id from :"schema".match
    where generation_id = $2::integer and right_id is not null
    union all
    select side, id from :"schema".buffer where generation_id = $2::integer
    union all
    select side, id from :"schema".correction where generation_id = $2::integer and status <> 'discarded'
), quarantined as (
    select side, count(*) filter (where generation_id = $2::integer)
        - count(*) filter (where generation_id = $1::integer) as more
    from :"schema".quarantine
    where generation_id in ($1::integer, $2::integer) and status <> 'discarded'
    group by side
), unknown as (
    select w.side, count(*) as events
    from wanted w
    where not exists (select from known k where k.side = w.side and k.id = w.id)
    group by w.side
)
select format('%s %s events of results of the base are unknown to the candidate', u.events, u.side)
from unknown u
left join quarantined q using (side)
where u.events > greatest(coalesce(q.more, 0), 0)
order by u.side
