-- Quarantined records of reconciliation $1 that mention one of the left events $2 or right events
-- $3 on their side, the first 20.
select quarantine_id, status, reason, side, source, partition, position, recorded_at, raw_text
from :"schema".quarantined q
where reconciliation = $1::text and exists (
    select from unnest(case side when 'left' then $2::text[] else $3::text[] end) as i (id)
    where position(convert_to(i.id, 'UTF8') in q.raw) > 0)
order by recorded_at nulls first, shard, epoch, length(quarantine_id), quarantine_id
limit 20
