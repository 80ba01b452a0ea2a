-- Merges the results of interval $2 into its base $1, as epoch $3 of each of the base's shards: among
-- the results with a member whose event time is from $4 to before $5. What only the base has there is
-- superseded, what only the interval has is published.
with base as materialized (
    select * from :"schema".match
    where generation_id = $1::integer and status in ('matched', 'provisional', 'final')
        and ((left_time >= $4::timestamptz and left_time < $5::timestamptz)
            or (right_time >= $4::timestamptz and right_time < $5::timestamptz))
), interval as materialized (
    select * from :"schema".match
    where generation_id = $2::integer and status in ('matched', 'provisional', 'final')
        and ((left_time >= $4::timestamptz and left_time < $5::timestamptz)
            or (right_time >= $4::timestamptz and right_time < $5::timestamptz))
), gone as materialized (
    select b.shard, b.bucket, b.match_id, b.status as was
    from base b
    where not exists (select from interval i where i.match_id = b.match_id)
), come as materialized (
    select i.*, b.status as was
    from interval i
    left join base b using (match_id)
    where b.match_id is null
        or (b.key, b.left_time, b.right_time, b.verdict, b.differences::text)
            is distinct from (i.key, i.left_time, i.right_time, i.verdict, i.differences::text)
), withdrawn as (
    update :"schema".match m set
        status = 'superseded',
        changed_epoch = $3::bigint,
        row_hash = substr(m.row_hash, 1, 16)
            || :"schema".match_stands(m.match_id, 'superseded', $3::bigint)
    from gone
    where m.generation_id = $1::integer and m.shard = gone.shard
        and m.bucket = gone.bucket and m.match_id = gone.match_id
), published as (
    insert into :"schema".match (
        generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences, opened_epoch,
        changed_epoch, row_hash)
    select
        $1::integer, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences, $3::bigint,
        $3::bigint,
        :"schema".match_said($1::integer, shard, row(
            generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
            right_revision, key, left_time, right_time, horizon, verdict, differences,
            opened_epoch, changed_epoch, row_hash):::"schema".match)
            || :"schema".match_stands(match_id, status, $3::bigint)
    from come
    on conflict (generation_id, shard, bucket, match_id) do update set
        kind = excluded.kind,
        status = excluded.status,
        left_id = excluded.left_id,
        left_revision = excluded.left_revision,
        right_id = excluded.right_id,
        right_revision = excluded.right_revision,
        key = excluded.key,
        left_time = excluded.left_time,
        right_time = excluded.right_time,
        horizon = excluded.horizon,
        verdict = excluded.verdict,
        differences = excluded.differences,
        changed_epoch = excluded.changed_epoch,
        row_hash = excluded.row_hash
)
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select
    $1::integer, shard, $3::bigint,
    row_number() over (partition by shard order by active, match_id) - 1,
    bucket, match_id, was, status, 'rebuild'
from (
    select shard, bucket, match_id, was, 'superseded' as status, false as active from gone
    union all
    select shard, bucket, match_id, was, status, true from come) change
