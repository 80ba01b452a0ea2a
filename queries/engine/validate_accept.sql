-- Notes who accepts the differences of comparison $2 and why, if it is still the newest.
update :"schema".validation v
set accepted_by = $3::text, accepted_why = $4::text
where v.generation_id = $1::integer and v.number = $2::integer
    and not exists (select from :"schema".validation n
        where n.generation_id = v.generation_id and n.number > v.number)
