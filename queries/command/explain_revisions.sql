-- The revisions kept of the left events $2 and right events $3 of reconciliation $1.
select side, id, revision, deleted, key, event_time, horizon,
    case when not newest then 'replaced in epoch ' || retired_epoch
        when live then 'in the buffer' else 'its horizon has passed' end as state,
    added_epoch as epoch, arrived_at, source, partition, position, attributes, shard
from :"schema".events
where reconciliation = $1::text
    and ((side = 'left' and id = any ($2::text[])) or (side = 'right' and id = any ($3::text[])))
order by side, id, arrived_at nulls first, shard, added_epoch
