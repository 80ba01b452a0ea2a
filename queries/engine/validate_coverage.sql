-- What candidate $2 has not read of what its base $1 has: one line each. Released records are no
-- source that both read.
with candidate as (
    select h.shard, h.watermark, (g.catch_up ->> 'watermark')::timestamptz as caught_up
    from :"schema".generation g
    join :"schema".shard h using (generation_id)
    where g.generation_id = $2::integer
), base as (
    select side, source, partition, max(position) as position from :"schema".source_offset
    where generation_id = $1::integer and source <> 'quarantine'
    group by side, source, partition
)
select format('shard %s has watermark %s; it catches up at %s', shard, watermark, caught_up)
from candidate
where watermark < caught_up
union all
select format('shard %s has read nothing of partition %s of the %s source %s', c.shard,
    b.partition, b.side, b.source)
from candidate c
cross join base b
left join :"schema".source_offset o on o.generation_id = $2::integer and o.shard = c.shard
    and o.side = b.side and o.source = b.source and o.partition = b.partition
where coalesce(o.position, '') = '' and (o.position is null or b.position <> '')
