-- The keys of active results of generation $1 that generation $2 does not have.
select distinct b.key
from :"schema".match b
where b.generation_id = $1::integer and b.status in ('matched', 'provisional', 'final')
    and not exists (
        select from :"schema".match c
        where c.generation_id = $2::integer and c.match_id = b.match_id
            and c.status in ('matched', 'provisional', 'final'))
