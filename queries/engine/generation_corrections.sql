-- The open corrections of a generation: what names them, where they were read, and from when to when
-- the events are that it has of the same id, by its active results and its buffer; nulls for none.
-- Each look-up can use one index only, for the reason that fetch.sql gives.
select
    c.shard, c.epoch, c.ordinal, c.side, c.source, c.partition, c.position, c.event_time,
    c.interval_from, c.interval_to, held.first_time, held.last_time
from :"schema".correction c
cross join lateral (
    select min(h.event_time) as first_time, max(h.event_time) as last_time
    from (
        select m.left_time as event_time from :"schema".match m
        where c.side = 'left' and m.left_id = c.id
            and m.generation_id is not distinct from c.generation_id
            and m.status in ('matched', 'provisional', 'final')
        union all
        select m.right_time from :"schema".match m
        where c.side = 'right' and m.right_id = c.id
            and m.generation_id is not distinct from c.generation_id
            and m.status in ('matched', 'provisional', 'final')
        union all
        select b.event_time
        from :"schema".shard s
        cross join lateral (
            select x.event_time from :"schema".buffer x
            where x.generation_id = s.generation_id and x.shard = s.shard
                and x.side = c.side and x.id = c.id and x.retired_epoch is null
            offset 0) b
        where s.generation_id = c.generation_id) h
    offset 0) held
where c.generation_id = $1::integer and c.status = 'open'
order by c.shard, c.epoch, c.ordinal
