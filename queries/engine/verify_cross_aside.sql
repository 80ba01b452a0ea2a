-- Records set aside whose columns contradict each other or the position up to which released ones
-- were read. See verify_cross_serving.
with record as (
    select
        q.*,
        n.nth,
        coalesce((
            select o.position::bigint from :"schema".source_offset o
            where o.generation_id = q.generation_id and o.shard = q.shard and o.side = q.side
                and o.source = 'quarantine' and o.position ~ '^[0-9]{1,18}$'), 0) as read_to
    from :"schema".quarantine q
    left join (
        select r.shard, r.epoch, r.ordinal,
            row_number() over (partition by r.side order by r.released_seq) as nth
        from :"schema".quarantine r
        where r.generation_id = $1::integer and r.released_seq is not null) n
        using (shard, epoch, ordinal)
    where q.generation_id = $1::integer and q.shard = $2::integer
        and $3::timestamptz is not null and $4::boolean is not null
)
select 'quarantine', epoch || ' ' || ordinal, case
    when (status in ('released', 'resolved')) <> (released_seq is not null)
        or (released_at is null) <> (released_seq is null)
        then 'it is ' || status || ', but its released_seq or released_at says otherwise'
    when released_seq is null then 'it was repaired, but not released'
    when released_seq <> nth then 'its released_seq is ' || released_seq || ', it is the '
        || nth || '. of its side'
    else 'it is ' || status || ', but released records were read up to ' || read_to end
from record
where (status in ('released', 'resolved')) <> (released_seq is not null)
    or (released_at is null) <> (released_seq is null)
    or (released_seq is null and repaired is not null)
    or (released_seq is not null
        and (released_seq <> nth or (status = 'resolved') <> (released_seq <= read_to)))
union all
select 'correction', c.epoch || ' ' || c.ordinal,
    'it is ' || c.status || ', its resolved_by is ' || coalesce(c.resolved_by::text, 'null')
from :"schema".correction c
where c.generation_id = $1::integer and c.shard = $2::integer
    and ((c.status = 'resolved') <> (c.resolved_by is not null)
        or (c.resolved_by is not null and not exists (
            select from :"schema".generation g where g.generation_id = c.resolved_by)))
