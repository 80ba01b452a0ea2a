-- Takes over which quarantined records were released, so that those are not released again that the
-- generation found bad as well, and later releases get higher numbers.
update :"schema".quarantine q set
    status = b.status, repaired = b.repaired, released_seq = b.released_seq,
    released_at = b.released_at
from (
    select distinct on (side, source, partition, position, reason) *
    from :"schema".quarantine
    where generation_id = $1::integer and released_seq is not null and status <> 'discarded'
    order by side, source, partition, position, reason, released_seq desc) b
where q.generation_id = $2::integer and q.status = 'open' and q.side = b.side
    and q.source = b.source and q.partition = b.partition and q.position = b.position
    and q.reason = b.reason
