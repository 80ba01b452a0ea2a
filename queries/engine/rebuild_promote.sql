-- Writes into generation $2, as epoch $3 of each of its shards, how its results differ from those of
-- generation $1, which serves: what only that one has is there as superseded, and each difference has
-- a transition from the status that readers saw. The shard of a key is its base's unless $4 and $5
-- say otherwise.
with base as materialized (
    select * from :"schema".match
    where generation_id = $1::integer and status in ('matched', 'provisional', 'final')
), candidate as materialized (
    select * from :"schema".match
    where generation_id = $2::integer and status in ('matched', 'provisional', 'final')
), gone as materialized (
    select b.*, coalesce(k.shard, b.shard) as at, b.status as was
    from base b
    left join unnest($4::text[], $5::integer[]) as k (key, shard) using (key)
    where not exists (select from candidate c where c.match_id = b.match_id)
), come as materialized (
    select c.shard, c.bucket, c.match_id, c.status, b.status as was
    from candidate c
    left join base b using (match_id)
    where b.match_id is null or b.status <> c.status
        or (b.key, b.left_time, b.right_time, b.verdict, b.differences::text)
            is distinct from (c.key, c.left_time, c.right_time, c.verdict, c.differences::text)
), withdrawn as (
    insert into :"schema".match (
        generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences, opened_epoch,
        changed_epoch, row_hash)
    select
        $2::integer, at, bucket, match_id, kind, 'superseded', left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences, $3::bigint,
        $3::bigint,
        :"schema".match_said($2::integer, at, row(
            generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
            right_revision, key, left_time, right_time, horizon, verdict, differences,
            opened_epoch, changed_epoch, row_hash):::"schema".match)
            || :"schema".match_stands(match_id, 'superseded', $3::bigint)
    from gone
    on conflict (generation_id, shard, bucket, match_id) do update set
        status = 'superseded',
        changed_epoch = excluded.changed_epoch,
        row_hash = substr(match.row_hash, 1, 16) || substr(excluded.row_hash, 17)
), touched as (
    update :"schema".match m set
        changed_epoch = $3::bigint,
        row_hash = substr(m.row_hash, 1, 16)
            || :"schema".match_stands(m.match_id, m.status, $3::bigint)
    from come
    where m.generation_id = $2::integer and m.shard = come.shard
        and m.bucket = come.bucket and m.match_id = come.match_id
)
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select
    $2::integer, shard, $3::bigint,
    row_number() over (partition by shard order by active, match_id) - 1,
    bucket, match_id, was, status, 'rebuild'
from (
    select at as shard, bucket, match_id, was, 'superseded' as status, false as active from gone
    union all
    select shard, bucket, match_id, was, status, true from come) change
