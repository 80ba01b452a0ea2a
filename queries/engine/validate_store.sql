-- Stores a comparison under the next number. Gives the number and the time.
insert into :"schema".validation (generation_id, number, base, scope, passed, only_base,
    only_candidate, in_both, explained, unexplained, totals, differences)
select $1::integer, coalesce(max(v.number), 0) + 1, $2::integer, $3::text, $4::boolean, $5::bigint,
    $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::json, $11::json
from :"schema".validation v
where v.generation_id = $1
returning number, validated_at
