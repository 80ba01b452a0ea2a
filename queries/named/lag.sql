-- Question: How far is each source partition, who holds the low watermark back, and since when?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Column: reconciliation -- the reconciliation
-- Column: shard -- the shard
-- Column: side -- left or right
-- Column: source -- name of the source
-- Column: partition -- partition within the source
-- Column: position -- position just past the last record read
-- Column: watermark -- event time up to which the partition is believed complete
-- Column: low_watermark -- the shard's low watermark
-- Column: holds -- true where this partition holds the low watermark back
-- Column: since -- when the low watermark came to where it is, as far back as manifests are kept
-- Column: behind -- event time between this partition and the furthest one
-- Column: age -- the clock minus the watermark
-- Column: idle_since -- last record, when idle_after lets the partition stop holding the watermark
-- Column: last_event_at -- last record read here, by the database clock
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
select l.reconciliation, l.shard, l.side, l.source, l.partition, l.position, l.watermark,
    l.low_watermark, l.holds, e.since, l.behind,
    case when isfinite(l.watermark) then now() - l.watermark end as age,
    l.idle_since, l.last_event_at
from :"schema".lag l
left join (
    select reconciliation, shard, watermark_after, min(committed_at) as since
    from :"schema".epochs
    group by reconciliation, shard, watermark_after
) e on e.reconciliation = l.reconciliation and e.shard = l.shard
    and e.watermark_after = l.low_watermark
where :'reconciliation' = '' or l.reconciliation = :'reconciliation'
order by l.reconciliation, l.shard, l.side, l.source, l.partition;
