-- Results, withdrawn ones included, of the left events $2 and right events $3 of reconciliation
-- $1; only the identity $4 (hex) when it is not empty.
with found as (
    select m.* from :"schema".serving v
    join :"schema".shard h using (generation_id)
    join :"schema".match m using (generation_id, shard)
    where v.reconciliation = $1::text and m.left_id = any ($2::text[])
    union all
    select m.* from :"schema".serving v
    join :"schema".shard h using (generation_id)
    join :"schema".match m using (generation_id, shard)
    where v.reconciliation = $1::text and m.right_id = any ($3::text[])
        and not coalesce(m.left_id = any ($2::text[]), false)
)
select encode(m.match_id, 'hex') as match_id, m.kind, m.status, m.left_id, m.left_revision,
    m.right_id, m.right_revision, m.key, m.left_time, m.right_time, m.horizon as deadline,
    m.verdict, m.differences::jsonb as differences, d.waits_for, m.opened_epoch,
    m.changed_epoch, m.shard
from found m
left join :"schema".result_detail d using (generation_id, shard, match_id)
where $4::text = '' or m.match_id = decode($4::text, 'hex')
order by m.opened_epoch, m.shard, m.match_id
