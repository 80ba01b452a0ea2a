-- Writes result rows that may exist, and their transitions from the status they had. A row that
-- exists keeps the epoch that opened it; one that is withdrawn also keeps what it said. Where the
-- row to withdraw is not there, or not active, its transition has no reason, which the table
-- refuses. Rows are looked up one by one through the primary key, whatever the planner believes of
-- the table. Returns nothing.
with change as materialized (
    select
        c.*, c.status in ('matched', 'provisional', 'final') as published,
        m.place, m.status as before
    from unnest(
        $4::integer[], $5::integer[], $6::bytea[], $7::text[], $8::text[], $9::text[], $10::bigint[],
        $11::text[], $12::bigint[], $13::text[], $14::timestamptz[], $15::timestamptz[],
        $16::timestamptz[], $17::text[], $18::text[], $19::text[], $20::bytea[]
    ) as c (
        ordinal, bucket, match_id, kind, status, left_id, left_revision, right_id, right_revision,
        key, left_time, right_time, horizon, verdict, differences, reason, row_hash)
    left join lateral (
        select x.ctid as place, x.status from :"schema".match x
        where x.generation_id = $1::integer and x.shard = $2::integer
            and x.bucket = c.bucket and x.match_id = c.match_id
        offset 0) m on true
), published as (
    insert into :"schema".match (
        generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
        right_revision, key, left_time, right_time, horizon, verdict, differences, opened_epoch,
        changed_epoch, row_hash)
    select
        $1::integer, $2::integer, bucket, match_id, kind, status, left_id, left_revision,
        right_id, right_revision, key, left_time, right_time, horizon, verdict,
        differences::json, $3::bigint, $3::bigint, row_hash
    from change
    where published
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
), withdrawn as (
    update :"schema".match m set
        status = c.status,
        changed_epoch = $3::bigint,
        row_hash = substr(m.row_hash, 1, 16) || substr(c.row_hash, 17)
    from change c
    where m.ctid = c.place and not c.published
)
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select
    $1::integer, $2::integer, $3::bigint, ordinal, bucket, match_id, before, status,
    case when published or before in ('matched', 'provisional', 'final') then reason end
from change
order by ordinal
