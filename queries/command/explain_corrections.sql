-- Corrections of the left events $2 and right events $3 of reconciliation $1.
select correction_id, status, reason, side, id, revision, deleted, key, event_time, watermark,
    interval_from, interval_to, source, partition, position, attributes, resolved_by, recorded_at
from :"schema".corrections
where reconciliation = $1::text
    and ((side = 'left' and id = any ($2::text[])) or (side = 'right' and id = any ($3::text[])))
order by recorded_at nulls first, shard, epoch, length(correction_id), correction_id
