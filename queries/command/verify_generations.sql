-- The generations of a reconciliation that have rows, and how many shards each has.
select generation_id, shards from :"schema".generation
where reconciliation = $1::text and status <> 'purged'
order by generation_id
