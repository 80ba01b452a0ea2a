-- Writes result rows as they are given, and removes those named last.
with gone as (
    delete from :"schema".match
    where generation_id = $1::integer and shard = $2::integer and (bucket, match_id) in (
        select * from unnest($20::integer[], $21::bytea[]))
)
insert into :"schema".match (
    generation_id, shard, bucket, match_id, kind, left_id, left_revision, right_id, right_revision,
    key, left_time, right_time, horizon, verdict, differences, status, opened_epoch, changed_epoch,
    row_hash)
select
    $1::integer, $2::integer, bucket, match_id, kind, left_id, left_revision, right_id,
    right_revision, key, left_time, right_time, horizon, verdict, differences::json, status, opened_epoch,
    changed_epoch, row_hash
from unnest(
    $3::integer[], $4::bytea[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[],
    $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[],
    $15::text[], $16::text[], $17::bigint[], $18::bigint[], $19::bytea[]
) as m (
    bucket, match_id, kind, left_id, left_revision, right_id, right_revision, key, left_time,
    right_time, horizon, verdict, differences, status, opened_epoch, changed_epoch, row_hash)
on conflict (generation_id, shard, bucket, match_id) do update set
    kind = excluded.kind,
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
    status = excluded.status,
    opened_epoch = excluded.opened_epoch,
    changed_epoch = excluded.changed_epoch,
    row_hash = excluded.row_hash
