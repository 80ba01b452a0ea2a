-- Question: What has happened to one event: revisions, results, transitions and their causes?
--   Revisions are shown for as long as their buffer rows are kept.
-- Parameter: id text -- the event's id
-- Parameter: side left|right|both 'both' -- on which side
-- Parameter: reconciliation text '' -- only this one; all when empty
-- Column: reconciliation -- the reconciliation
-- Column: shard -- the shard
-- Column: epoch -- the epoch that did it
-- Column: at -- when that epoch was written; null once its manifest is purged
-- Column: what -- revision, deletion, late event or result
-- Column: side -- side of the event
-- Column: revision -- revision of the event
-- Column: event_time -- time of that revision
-- Column: kind -- kind of the result
-- Column: partner -- the other member of a pair, as id/revision
-- Column: from_status -- status of the result before; null when it is new
-- Column: to_status -- status after
-- Column: cause -- why
-- Column: match_id -- the result
-- Column: position -- source position just past the record, as source/partition position
\if :{?schema} \else \set schema 'tally' \endif
\if :{?side} \else \set side 'both' \endif
\if :{?reconciliation} \else \set reconciliation '' \endif
with revision as (
    select reconciliation, shard, added_epoch as epoch, arrived_at as at, 1 as place,
        revision as ordinal, case when deleted then 'deletion' else 'revision' end as what, side,
        revision, event_time, null as kind, null as partner, null as from_status,
        null as to_status, null as cause, null as match_id,
        source || '/' || partition || ' ' || position as position
    from :"schema".events
    where side in ('left', 'right') and id = :'id'
), late as (
    select reconciliation, shard, epoch, recorded_at, 2, revision, 'late event', side, revision,
        event_time, null, null, null, status, reason, null,
        source || '/' || partition || ' ' || position
    from :"schema".corrections
    where id = :'id'
), result as (
    select reconciliation, shard, epoch, at, 3, ordinal, 'result', 'left', left_revision, left_time,
        kind, right_id || '/' || right_revision, from_status, to_status, reason, match_id, null
    from :"schema".result_history
    where left_id = :'id' and epoch between opened_epoch and changed_epoch
    union all
    select reconciliation, shard, epoch, at, 3, ordinal, 'result', 'right', right_revision,
        right_time, kind, left_id || '/' || left_revision, from_status, to_status, reason, match_id, null
    from :"schema".result_history
    where right_id = :'id' and epoch between opened_epoch and changed_epoch
)
select reconciliation, shard, epoch, at, what, side, revision, event_time, kind, partner,
    from_status, to_status, cause, match_id, position
from (select * from revision union all select * from late union all select * from result) h
where :'side' in (side, 'both')
    and (:'reconciliation' = '' or reconciliation = :'reconciliation')
order by reconciliation, at nulls first, shard, epoch, place, ordinal, side, match_id;
