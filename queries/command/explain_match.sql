-- The results of reconciliation $1 whose identity begins with the hex digits $2, at most 11.
select distinct encode(m.match_id, 'hex') as match_id, m.left_id, m.right_id
from :"schema".generation g
join :"schema".shard h using (generation_id)
join :"schema".match m using (generation_id, shard)
where g.reconciliation = $1::text and g.status in ('serving', 'retired')
    and m.match_id >= decode(rpad($2::text, 64, '0'), 'hex')
    and m.match_id <= decode(rpad($2::text, 64, 'f'), 'hex')
order by match_id
limit 11
