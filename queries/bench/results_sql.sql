-- Counts and sums up the identities of the pairs and the final rows of the hand-written epochs.
select
    count(*) filter (where kind = 'pair') as pairs,
    count(*) filter (where status = 'final') as final,
    coalesce(sum(hashtextextended(encode(match_id, 'hex'), 0)::numeric), 0)::text as fingerprint
from :"schema".sql_match
where status in ('matched', 'final')
