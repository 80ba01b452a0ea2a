-- Moves the pointer. The generation that served retires.
with moved as (
    update :"schema".serving set generation_id = $2::integer, since = clock_timestamp()
    where reconciliation = $1::text
)
update :"schema".generation set
    status = case when generation_id = $2::integer then 'serving' else 'retired' end,
    status_at = clock_timestamp(),
    promoted_epoch = case
        when generation_id = $2::integer then coalesce(promoted_epoch, $4::bigint)
        else promoted_epoch end
where generation_id in ($2::integer, $3::integer)
