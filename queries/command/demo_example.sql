-- A payment with a story: shown as unmatched first, then matched when its signal came late; or any
-- payment that is matched.
select r.left_id
from :"schema".results as r
where r.kind = 'pair'
order by r.left_id in (
    select h.left_id from :"schema".result_history as h
    where h.to_status = 'retracted' and h.kind = 'left_only' and h.reason = 'partner_arrived'
) desc, r.left_id
limit 1
