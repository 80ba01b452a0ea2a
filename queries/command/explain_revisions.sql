-- The revisions kept of the left events $2 and right events $3 of reconciliation $1.
with asked as (
    select 'left' as side, id from unnest($2::text[]) as l (id)
    union all
    select 'right', id from unnest($3::text[]) as r (id)
)
select side, id, revision, deleted, key, event_time, horizon,
    case when not newest then 'replaced in epoch ' || retired_epoch
        when live then 'in the buffer' else 'its horizon has passed' end as state,
    added_epoch as epoch, arrived_at, source, partition, position, attributes, shard
from asked
join :"schema".events using (side, id)
where reconciliation = $1::text
order by side, id, arrived_at nulls first, shard, added_epoch
