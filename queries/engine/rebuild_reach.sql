-- How far apart the members of a pair can be by the rule of a generation, in microseconds.
select greatest((rule ->> 'before_us')::bigint, (rule ->> 'after_us')::bigint)
from :"schema".generation
where generation_id = $1::integer
