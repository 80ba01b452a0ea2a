-- The generations of a reconciliation and how many shards each has.
select generation_id, shards from :"schema".generation
where reconciliation = $1::text
order by generation_id
