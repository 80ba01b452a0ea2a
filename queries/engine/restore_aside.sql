-- Discards what the epochs after $3 set aside and nobody has taken up: the sources are read again
-- from there. What was discarded by nobody is open again, and so is what an interval had settled whose
-- merge is undone.
with reopened as (
    update :"schema".correction c
    set status = case when c.epoch > $3::bigint then 'discarded' else 'open' end,
        resolved_by = null
    from :"schema".generation g
    where c.generation_id = $1::integer and c.shard = $2::integer and c.status = 'resolved'
        and g.generation_id = c.resolved_by and g.status = 'merged'
        and g.promoted_epoch > $3::bigint
), corrections as (
    update :"schema".correction c
    set status = case when c.status = 'open' then 'discarded' else 'open' end
    where c.generation_id = $1::integer and c.shard = $2::integer
        and (c.status = 'open' and c.epoch > $3::bigint
            or c.status = 'discarded' and c.epoch = any($4::bigint[]))
)
update :"schema".quarantine q
set status = case when q.status = 'open' then 'discarded' else 'open' end
where q.generation_id = $1::integer and q.shard = $2::integer
    and (q.status = 'open' and q.epoch > $3::bigint
        or q.status = 'discarded' and q.epoch = any($4::bigint[]))
