-- Corrections of a reconciliation, oldest first. $1 status, $2 reason; empty text means any.
-- $3 reconciliation, $4 at most this many rows.
select correction_id, status, reason, side, id, revision, deleted, key, event_time, watermark,
    watermark - event_time as late_by, interval_from, interval_to, source, partition, position,
    attributes, resolved_by, recorded_at
from :"schema".corrections
where reconciliation = $3::text
    and ($1::text = '' or status = $1::text)
    and ($2::text = '' or reason = $2::text)
order by shard, epoch, correction_id
limit $4::bigint
