-- Corrections of reconciliation $1, oldest first. $2 status and $3 reason: empty means any. $4 at
-- most this many rows.
select correction_id, status, reason, side, id, revision, deleted, key, event_time, watermark,
    case when isfinite(watermark) then watermark - event_time end as behind,
    interval_from, interval_to, source, partition, position, attributes, resolved_by, recorded_at
from :"schema".corrections
where reconciliation = $1::text
    and ($2::text = '' or status = $2::text)
    and ($3::text = '' or reason = $3::text)
order by recorded_at nulls first, shard, epoch, length(correction_id), correction_id
limit $4::bigint
