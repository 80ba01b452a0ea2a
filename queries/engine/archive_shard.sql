-- Where a shard stands and what it belongs to, for an archive: epoch, reconciliation, rule version.
select h.epoch, g.reconciliation, g.rule_version
from :"schema".shard h join :"schema".generation g using (generation_id)
where h.generation_id = $1::integer and h.shard = $2::integer
