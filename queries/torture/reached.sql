-- What the runs over a schema came to: branches of recovery by name, and how often each was taken.
select 'replayed epochs', count(*) from :"schema".epoch where replays is not null
union all
select 'replays with the same outputs', count(*)
from :"schema".epoch where replays is not null and replay_divergence is null
union all
select case a.from_epoch - a.restored_epoch
    when 1 then 'fallen back to epoch N-1'
    when 2 then 'fallen back to epoch N-2'
    else 'fallen back to an older epoch' end, count(*)
from :"schema".attempt a where a.restored_epoch is not null
group by 1
union all
select 'lease taken over', count(*)
from :"schema".attempt a
where exists (
    select from :"schema".attempt b
    where b.fencing_token = (
            select max(c.fencing_token) from :"schema".attempt c
            where c.fencing_token < a.fencing_token)
        and (b.ended_at is null or b.ended_at > a.started_at))
union all
select 'rows kept outside memory', count(*) from :"schema".buffer where spilled
union all
select 'records read', coalesce(sum(read), 0)::bigint
from :"schema".epoch where status = 'committed'
union all
select 'discarded epochs', count(*) from :"schema".epoch where status = 'discarded'
union all
select 'epochs', count(*) from :"schema".epoch
