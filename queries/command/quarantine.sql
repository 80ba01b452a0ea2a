-- Quarantined records of reconciliation $1, oldest first. $2 status, $3 reason and $4 side: empty
-- means any. $5 at most this many rows.
select quarantine_id, status, reason, side, source, partition, position, recorded_at, released_at,
    raw_text, raw, repaired
from :"schema".quarantined
where reconciliation = $1::text
    and ($2::text = '' or status = $2::text)
    and ($3::text = '' or reason = $3::text)
    and ($4::text = '' or side = $4::text)
order by recorded_at nulls first, shard, epoch, length(quarantine_id), quarantine_id
limit $5::bigint
