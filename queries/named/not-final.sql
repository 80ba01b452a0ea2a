-- Question: Which rows are not final yet, oldest first, and what does each wait for?
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Parameter: kind any|pair|left_only|right_only 'any' -- only rows of this kind
-- Parameter: limit bigint '100' -- at most this many rows
-- Column: reconciliation -- the reconciliation
-- Column: match_id -- the result
-- Column: kind -- pair, left_only or right_only
-- Column: status -- matched or provisional
-- Column: left_id -- left event
-- Column: left_revision -- its revision
-- Column: right_id -- right event
-- Column: right_revision -- its revision
-- Column: key -- the join key
-- Column: event_time -- the earlier time of its members
-- Column: deadline -- the row is final when the low watermark has passed this
-- Column: remaining -- event time still to go; null while the watermark is infinite
-- Column: held_by -- the source partitions that hold the watermark
-- Column: waits_for -- what it waits for, in words
\if :{?schema} \else \set schema 'tally' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
\if :{?kind} \else \set kind 'any' \endif
\if :{?limit} \else \set limit '100' \endif
select reconciliation, match_id, kind, status, left_id, left_revision, right_id, right_revision,
    key, event_time, deadline, remaining, held_by, waits_for
from :"schema".waiting
where (:'reconciliation' = '' or reconciliation = :'reconciliation')
    and :'kind' in (kind, 'any')
order by event_time, match_id
limit :'limit';
