-- Deletes the rows whose horizon the watermark has passed, and makes those of the left side that
-- found no partner final. Parameters: epoch, rule version.
with gone as (
    delete from :"schema".sql_buffer b
    where (b.generation_id::bigint << 32 | b.shard) = 1::bigint << 32
        and b.horizon < (select min(watermark) from :"schema".sql_offset)
    returning b.side, b.id, b.revision, b.key, b.event_time, b.horizon
), final as (
    insert into :"schema".sql_match as m (
        generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, key, left_time,
        horizon, opened_epoch, changed_epoch)
    select
        1, 0, floor(date_part('epoch', horizon) / 900)::integer,
        sha256(convert_to(
            length(id) || ':' || id || '|' || length(revision::text) || ':' || revision
            || '|0:|0:|' || length($2::text) || ':' || $2::text, 'UTF8')),
        'left_only', 'final', id, revision, key, event_time, horizon, $1::bigint, $1::bigint
    from gone
    where side = 'left' and not exists (
        select from :"schema".sql_match x
        where x.generation_id = 1 and x.shard = 0 and x.left_id = gone.id
            and x.status = 'matched')
    on conflict (generation_id, shard, bucket, match_id) do update set
        status = excluded.status, changed_epoch = excluded.changed_epoch
    returning m.bucket, m.match_id
)
insert into :"schema".sql_match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select 1, 0, $1::bigint, 1000000000 + row_number() over (), bucket, match_id, null, 'final',
    'horizon_passed'
from final
