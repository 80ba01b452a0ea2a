-- Rows that name an epoch that never was. Where a restore went back, the numbers of what it went
-- back behind were used, even where the manifest is lost. See verify_cross_serving.
with named as (
    select 'buffer' as name, side || ' ' || id || ', added in epoch ' || added_epoch as row,
        added_epoch as epoch
    from :"schema".buffer
    where generation_id = $1::integer and shard = $2::integer and $3::timestamptz is not null
    union all
    select 'buffer', side || ' ' || id || ', added in epoch ' || added_epoch, retired_epoch
    from :"schema".buffer
    where generation_id = $1::integer and shard = $2::integer and retired_epoch is not null
    union all
    select 'match', encode(match_id, 'hex'), opened_epoch from :"schema".match
    where generation_id = $1::integer and shard = $2::integer and $4::boolean
    union all
    select 'match', encode(match_id, 'hex'), changed_epoch from :"schema".match
    where generation_id = $1::integer and shard = $2::integer and $4::boolean
    union all
    select 'match_transition', epoch || ' ' || ordinal, epoch from :"schema".match_transition
    where generation_id = $1::integer and shard = $2::integer and $4::boolean
    union all
    select 'correction', epoch || ' ' || ordinal, epoch from :"schema".correction
    where generation_id = $1::integer and shard = $2::integer
    union all
    select 'quarantine', epoch || ' ' || ordinal, epoch from :"schema".quarantine
    where generation_id = $1::integer and shard = $2::integer
), unknown as (
    select n.* from named n
    left join :"schema".epoch e
        on e.generation_id = $1::integer and e.shard = $2::integer and e.epoch = n.epoch
    where e.epoch is null
)
select u.name, u.row, 'there is no epoch ' || u.epoch
from unknown u
where not exists (
    select from :"schema".epoch r
    where r.generation_id = $1::integer and r.shard = $2::integer and r.kind = 'restore'
        and r.parent_epoch < u.epoch and u.epoch < r.epoch)
