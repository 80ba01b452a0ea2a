-- Writes result rows that may exist, and their transitions from the status they had. A row that
-- exists keeps its members and the epoch that opened it. Returns nothing.
with change as (
    select * from unnest(
        $4::integer[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::bigint[],
        $10::text[], $11::bigint[], $12::text[], $13::timestamptz[], $14::timestamptz[],
        $15::timestamptz[], $16::text[], $17::text[], $18::text[]
    ) as c (
        ordinal, match_id, kind, status, left_id, left_revision, right_id, right_revision, key,
        left_time, right_time, horizon, verdict, differences, reason)
), written as (
    insert into :"schema".match (
        generation_id, shard, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences, opened_epoch,
        changed_epoch)
    select
        $1::integer, $2::integer, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences::jsonb,
        $3::bigint, $3::bigint
    from change
    on conflict (generation_id, shard, match_id) do update set
        status = excluded.status,
        horizon = excluded.horizon,
        -- A row that is withdrawn keeps what it said.
        verdict = case excluded.status when 'matched' then excluded.verdict else match.verdict end,
        differences = case excluded.status
            when 'matched' then excluded.differences else match.differences end,
        changed_epoch = excluded.changed_epoch
)
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, match_id, from_status, to_status, reason)
select $1::integer, $2::integer, $3::bigint, c.ordinal, c.match_id, m.status, c.status, c.reason
from change c
left join lateral (
    select x.status from :"schema".match x
    where x.generation_id = $1::integer and x.shard = $2::integer and x.match_id = c.match_id
    offset 0) m on true
order by c.ordinal
