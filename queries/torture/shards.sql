-- The shards that belong to a generation.
select s.generation_id, s.shard
from :"schema".shard s join :"schema".generation g using (generation_id)
where s.shard < g.shards
order by 1, 2
