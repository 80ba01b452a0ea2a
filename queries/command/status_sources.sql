-- One row per source partition and shard of reconciliation $1.
select shard, side || '/' || source || '/' || partition as source, position, watermark,
    behind, case when holds then 'holds the watermark'
        when idle then 'idle, does not hold it' end as note,
    last_event_at
from :"schema".lag
where reconciliation = $1::text
order by shard, side, source, partition
