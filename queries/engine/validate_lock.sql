-- Locks the row of a candidate, so that its validations are numbered one after the other. Gives its
-- status.
select status from :"schema".generation
where generation_id = $1::integer
for no key update
