-- The transitions of epoch $3 in the order of identity, with the hash of what their results say.
select t.match_id, t.to_status, t.reason, substr(m.row_hash, 1, 16)
from :"schema".match_transition t
join :"schema".match m using (generation_id, shard, bucket, match_id)
where t.generation_id = $1::integer and t.shard = $2::integer and t.epoch = $3::bigint
order by t.match_id
