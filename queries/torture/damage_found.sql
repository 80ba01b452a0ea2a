-- How many starts found something damaged and went back, and what the newest of them found.
select count(*), coalesce((array_agg(damage::text order by started_at desc))[1], '')
from :"schema".attempt where restored_epoch is not null
