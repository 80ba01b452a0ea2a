-- The status of a generation.
select status from :"schema".generation where generation_id = $1::integer
