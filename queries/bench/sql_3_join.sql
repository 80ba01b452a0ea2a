-- Joins the news with the buffer both ways and publishes the pairs. Parameters: epoch, window, rule
-- version.
with pair as (
    select
        l.id as left_id, l.revision as left_revision, l.event_time as left_time,
        l.attributes as left_attributes, l.key, r.id as right_id, r.revision as right_revision,
        r.event_time as right_time, r.attributes as right_attributes,
        greatest(l.horizon, r.horizon) as horizon
    from news l
    join :"schema".sql_buffer r on r.generation_id = 1 and r.shard = 0
        and hashtextextended(r.key, 0) = hashtextextended(l.key, 0) and r.key = l.key
        and r.side = 'right'
        and r.event_time between l.event_time and l.event_time + $2::interval
    where l.side = 'left'
    union all
    select
        l.id, l.revision, l.event_time, l.attributes, l.key, r.id, r.revision, r.event_time,
        r.attributes, greatest(l.horizon, r.horizon)
    from news r
    join :"schema".sql_buffer l on l.generation_id = 1 and l.shard = 0
        and hashtextextended(l.key, 0) = hashtextextended(r.key, 0) and l.key = r.key
        and l.side = 'left'
        and r.event_time between l.event_time and l.event_time + $2::interval
    -- Where both are news the first half has found them.
    where r.side = 'right' and l.added_epoch < $1::bigint
), published as (
    insert into :"schema".sql_match as m (
        generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, opened_epoch, changed_epoch)
    select
        1, 0, floor(date_part('epoch', horizon) / 900)::integer,
        sha256(convert_to(
            length(left_id) || ':' || left_id || '|'
            || length(left_revision::text) || ':' || left_revision || '|'
            || length(right_id) || ':' || right_id || '|'
            || length(right_revision::text) || ':' || right_revision || '|'
            || length($3::text) || ':' || $3::text, 'UTF8')),
        'pair', 'matched', left_id, left_revision, right_id, right_revision, key, left_time,
        right_time, horizon,
        case when abs((left_attributes ->> 'amount')::numeric
                - (right_attributes ->> 'amount')::numeric) <= 0.01
            and left_attributes ->> 'country' = right_attributes ->> 'country'
        then 'agree' else 'differ' end,
        $1::bigint, $1::bigint
    from pair
    on conflict (generation_id, shard, bucket, match_id) do update set
        status = excluded.status, horizon = excluded.horizon, verdict = excluded.verdict,
        changed_epoch = excluded.changed_epoch
    returning m.bucket, m.match_id
)
insert into :"schema".sql_match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select 1, 0, $1::bigint, 500000000 + row_number() over (), bucket, match_id, null, 'matched', 'joined'
from published
