-- The damaged rows that attempts have put on record when they went back.
select distinct d ->> 'table', d ->> 'row'
from :"schema".attempt a
cross join lateral jsonb_array_elements(a.damage) d
where a.generation_id = $1::integer and a.shard = $2::integer and jsonb_typeof(a.damage) = 'array'
