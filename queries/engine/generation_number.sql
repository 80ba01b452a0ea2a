-- A number above those of all epochs of these generations.
select coalesce(max(e.epoch), 0) + 1
from :"schema".epoch e
where e.generation_id = any($1::integer[])
