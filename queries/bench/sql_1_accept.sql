-- Takes the newest revision of each event of the batch into the buffer, unless it is too late or
-- not newer than the one there, and notes it as news. Parameters: epoch, window, lateness.
with taken as (
    insert into :"schema".sql_buffer as b (
        generation_id, shard, side, id, revision, key, event_time, deleted, attributes, horizon,
        source, partition, position, added_epoch)
    select distinct on (side, id)
        1, 0, side, id, revision, key, event_time, false, attributes,
        event_time + $3::interval + case side when 'left' then $2::interval else '0' end,
        side, 0, position::text, $1::bigint
    from stage
    where event_time >= (select min(watermark) from :"schema".sql_offset) - $3::interval
    order by side, id, revision desc, number
    on conflict (generation_id, shard, side, id) do update set
        revision = excluded.revision,
        key = excluded.key,
        event_time = excluded.event_time,
        attributes = excluded.attributes,
        horizon = excluded.horizon,
        position = excluded.position,
        added_epoch = excluded.added_epoch
    where b.revision < excluded.revision
    returning side, id, revision, key, event_time, attributes, horizon, xmax <> 0 as replaces
)
insert into news
select side, id, revision, key, event_time, attributes, horizon, replaces from taken
