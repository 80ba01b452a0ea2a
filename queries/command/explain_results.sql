-- Results, withdrawn ones included, of the left events $2 and right events $3 of reconciliation
-- $1; only the identity $4 (hex) when it is not empty. Each as the generation says that serves, or
-- as the last says that had it and served; what was withdrawn before that served was seen by nobody.
with found as (
    select g.status = 'serving' as serves, g.promoted_epoch, m.*
    from :"schema".generation g
    join :"schema".shard h using (generation_id)
    join :"schema".match m using (generation_id, shard)
    where g.reconciliation = $1::text and g.status in ('serving', 'retired')
        and m.left_id = any ($2::text[])
    union all
    select g.status = 'serving', g.promoted_epoch, m.*
    from :"schema".generation g
    join :"schema".shard h using (generation_id)
    join :"schema".match m using (generation_id, shard)
    where g.reconciliation = $1::text and g.status in ('serving', 'retired')
        and m.right_id = any ($3::text[])
        and not coalesce(m.left_id = any ($2::text[]), false)
), seen as (
    select distinct on (match_id) * from found
    where ($4::text = '' or match_id = decode($4::text, 'hex'))
        and (status in ('matched', 'provisional', 'final') or changed_epoch >= promoted_epoch)
    order by match_id, serves desc, changed_epoch desc
)
select m.generation_id as generation, encode(m.match_id, 'hex') as match_id, m.kind, m.status,
    m.left_id, m.left_revision, m.right_id, m.right_revision, m.key, m.left_time, m.right_time,
    m.horizon as deadline, m.verdict, m.differences::jsonb as differences, d.waits_for,
    m.opened_epoch, m.changed_epoch, m.shard
from seen m
left join :"schema".result_detail d using (generation_id, shard, bucket, match_id)
order by m.opened_epoch, m.shard, m.match_id
