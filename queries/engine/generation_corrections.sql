-- The open corrections of a generation: what names them, where they were read, and from when to when
-- the events are that it has of the same id, by its active results and its buffer; nulls for none.
select
    c.shard, c.epoch, c.ordinal, c.side, c.source, c.partition, c.position, c.event_time,
    c.interval_from, c.interval_to, held.first_time, held.last_time
from :"schema".correction c
cross join lateral (
    select min(h.event_time) as first_time, max(h.event_time) as last_time
    from (
        select m.left_time as event_time from :"schema".match m
        where c.side = 'left' and m.left_id = c.id and m.generation_id = c.generation_id
            and m.status in ('matched', 'provisional', 'final')
        union all
        select m.right_time from :"schema".match m
        where c.side = 'right' and m.right_id = c.id and m.generation_id = c.generation_id
            and m.status in ('matched', 'provisional', 'final')
        union all
        select b.event_time
        from :"schema".shard s
        join :"schema".buffer b on b.generation_id = s.generation_id and b.shard = s.shard
            and b.side = c.side and b.id = c.id and b.retired_epoch is null
        where s.generation_id = c.generation_id) h) held
where c.generation_id = $1::integer and c.status = 'open'
order by c.shard, c.epoch, c.ordinal
