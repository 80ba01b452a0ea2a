-- The leases of a generation by the database clock: shard, the worker it belongs to or null,
-- whether an attempt is running it (else it waits for that worker after a hand-over), the
-- microseconds the lease still has (0 when it is released or has run out), and the worker that
-- asks for the shard or null.
select
    shard,
    case when lease_until > now.at then worker end,
    attempt_id is not null and lease_until > now.at,
    case when lease_until > now.at
        then (extract(epoch from lease_until - now.at) * 1000000)::bigint else 0 end,
    case when lease_until > now.at then requested_by end
from :"schema".shard cross join (select clock_timestamp() as at offset 0) as now
where generation_id = $1::integer
order by shard
