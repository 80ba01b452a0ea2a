-- Question: Which keys have the most partners, and what share of all pairs?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: limit bigint '20' -- at most this many keys
-- Column: reconciliation -- the reconciliation
-- Column: key -- the join key
-- Column: pairs -- active pairs of the key
-- Column: left_events -- left events in them
-- Column: right_events -- right events in them
-- Column: share -- pairs / all active pairs of the reconciliation, 6 digits
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?limit} \else \set limit '20' \endif
with keyed as (
    select reconciliation, key, count(*) as pairs,
        sum(count(*)) over (partition by reconciliation) as total
    from :"schema".results
    where kind = 'pair' and (:'reconciliation' = '' or reconciliation = :'reconciliation')
    group by reconciliation, key
), hot as materialized (
    select * from keyed
    order by pairs desc, reconciliation, key collate "C"
    limit :'limit'
), members as (
    select r.reconciliation, r.key, count(distinct r.left_id) as left_events,
        count(distinct r.right_id) as right_events
    from :"schema".results r
    join hot using (reconciliation, key)
    where r.kind = 'pair'
    group by r.reconciliation, r.key
)
select h.reconciliation, h.key, h.pairs, m.left_events, m.right_events,
    round(h.pairs / h.total, 6) as share
from hot h
join members m using (reconciliation, key)
order by h.pairs desc, h.reconciliation, h.key collate "C";
