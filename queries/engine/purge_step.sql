-- Deletes the buffer rows of the blocks from $5 to before $6 that are not live at the epoch $3 with
-- the watermark $4, or at any after it; as long as the shard is purged behind that very epoch.
-- Returns how many, and whether it is. No index is wanted for the shard: see fetch.
with current as materialized (
    select from :"schema".shard
    where generation_id = $1::integer and shard = $2::integer and purged_epoch = $3::bigint
), gone as (
    delete from :"schema".buffer
    where ctid >= ('(' || $5::bigint || ',0)')::tid and ctid < ('(' || $6::bigint || ',0)')::tid
        and generation_id is not distinct from $1::integer
        and shard is not distinct from $2::integer
        and (retired_epoch <= $3::bigint or horizon < $4::timestamptz)
        and exists (select from current)
    returning 1
)
select (select count(*) from gone), exists (select from current)
