-- The active results of a sealed run, as one join over the raw events.
-- $1 join kind, $2 before and $3 after in microseconds.
-- Returns one line a result: status, left id/revision, right id/revision, - for an absent side.
with truth as (
    select distinct on (side, id) side, id, revision, key, time_us, deleted
    from raw_event
    order by side, id, revision desc
), event as (
    select side, id, key, time_us, format('%s/%s', id, revision) as label
    from truth
    where not deleted
), pair as (
    select l.id as left_id, l.label as left_label, r.id as right_id, r.label as right_label
    from event l
    join event r on r.key = l.key and r.time_us between l.time_us - $2 and l.time_us + $3
    where l.side = 'left' and r.side = 'right'
)
select format('matched %s %s', left_label, right_label) from pair
union all
select format('final %s -', label)
from event
where side = 'left' and $1::text in ('left', 'full')
  and not exists (select from pair where left_id = id)
union all
select format('final - %s', label)
from event
where side = 'right' and $1::text in ('right', 'full')
  and not exists (select from pair where right_id = id)
