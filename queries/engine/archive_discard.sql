-- Discards the epochs after $3, with what they set aside.
with discarded as (
    update :"schema".epoch set status = 'discarded'
    where generation_id = $1::integer and shard = $2::integer and epoch > $3::bigint
        and status = 'committed'
), corrections as (
    update :"schema".correction set status = 'discarded'
    where generation_id = $1::integer and shard = $2::integer and epoch > $3::bigint
        and status = 'open'
)
update :"schema".quarantine set status = 'discarded'
where generation_id = $1::integer and shard = $2::integer and epoch > $3::bigint
    and status = 'open'
