-- Marks live rows of the buffer as spilled, a step at a time in the order of the primary key after
-- the one given. Returns the last key of the step and its rows; a null key when none were left.
with step as materialized (
    select side, id, added_epoch, spilled, retired_epoch, horizon from :"schema".buffer
    where generation_id = $1::integer and shard = $2::integer
        and (generation_id, shard, side, id, added_epoch)
            > ($1::integer, $2::integer, $4::text, $5::text, $6::bigint)
    order by generation_id, shard, side, id, added_epoch
    limit 20000
), marked as (
    update :"schema".buffer b set spilled = true
    from step s
    where b.generation_id = $1::integer and b.shard = $2::integer
        and b.side = s.side and b.id = s.id and b.added_epoch = s.added_epoch
        and not s.spilled and s.retired_epoch is null and s.horizon >= $3::timestamptz
)
select side, id, added_epoch from step order by side desc, id desc, added_epoch desc limit 1
