-- Marks live rows of the buffer as spilled, a step at a time in the order of the primary key after
-- the one given. Returns the last key of the step; no row when nothing was left. The rows are
-- found by their place, since a join would be planned blindly while there are no statistics.
with step as materialized (
    select ctid, side, id, added_epoch, spilled, retired_epoch, horizon from :"schema".buffer
    where generation_id = $1::integer and shard = $2::integer
        and (generation_id, shard, side, id, added_epoch)
            > ($1::integer, $2::integer, $4::text, $5::text, $6::bigint)
    order by generation_id, shard, side, id, added_epoch
    limit 20000
), marked as (
    update :"schema".buffer set spilled = true
    where ctid = any (array(
        select ctid from step
        where not spilled and retired_epoch is null and horizon >= $3::timestamptz))
)
select side, id, added_epoch from step order by side desc, id desc, added_epoch desc limit 1
