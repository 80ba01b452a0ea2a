-- Corrections of the left events $2 and right events $3 of reconciliation $1, with the epoch of the
-- rebuild that settled them.
select generation_id as generation, correction_id, status, reason, side, id, revision, deleted, key,
    event_time, watermark, interval_from, interval_to, source, partition, position, attributes,
    resolved_by,
    (select g.promoted_epoch from :"schema".generation g where g.generation_id = c.resolved_by)
        as resolved_epoch,
    recorded_at
from :"schema".corrections c
where reconciliation = $1::text
    and ((side = 'left' and id = any ($2::text[])) or (side = 'right' and id = any ($3::text[])))
order by recorded_at nulls first, generation_id, shard, epoch, length(correction_id), correction_id
