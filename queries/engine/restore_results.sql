-- Gives the results that changed after epoch $3, and those named in $5, the status that they had
-- after it by their transitions in epochs that count: a row that was missing when a discarded epoch
-- was undone has no step back. An epoch that a restore went back behind does not count, also when its
-- manifest is gone and says nothing. What was published since is retracted. The step of each is a
-- transition of epoch $4, withdrawals first. Rows without any transition go: nobody published them.
-- The first transition of a result comes from nothing: where it says otherwise, or the one before it
-- is gone, that is made right, so that the result can be published again. That of a rebuild says what
-- was served before, be it nothing.
-- The second half of a row's hash is made again.
with back as materialized (
    select parent_epoch, epoch from :"schema".epoch
    where generation_id = $1::integer and shard = $2::integer and kind = 'restore'
        and status = 'committed' and epoch <= $3::bigint
), moved as materialized (
    select bucket, match_id from :"schema".match_transition
    where generation_id = $1::integer and shard = $2::integer
        and (epoch > $3::bigint or match_id = any($5::bytea[]))
    union
    select bucket, match_id from :"schema".match
    where generation_id = $1::integer and shard = $2::integer
        and (changed_epoch > $3::bigint or match_id = any($5::bytea[]))
), past as materialized (
    select
        t.bucket,
        t.match_id,
        (array_agg(t.to_status order by t.epoch desc, t.ordinal desc))[1] as newest_status,
        max(t.epoch) as newest_epoch,
        coalesce(
            (array_agg(t.to_status order by t.epoch desc, t.ordinal desc)
                filter (where t.epoch <= $3::bigint and e.status is distinct from 'discarded'
                    and not exists (
                        select from back
                        where t.epoch > back.parent_epoch and t.epoch < back.epoch))
            )[1], 'retracted') as status,
        max(t.epoch) filter (where t.epoch <= $3::bigint) as since,
        coalesce(
            max(t.epoch) filter (where t.from_status is null and t.reason <> 'rebuild'
                and e.kind is distinct from 'rebuild'),
            min(t.epoch)) as opened
    from :"schema".match_transition t
    left join :"schema".epoch e on e.generation_id = t.generation_id
        and e.shard = t.shard and e.epoch = t.epoch
    where t.generation_id = $1::integer and t.shard = $2::integer
        and (t.bucket, t.match_id) in (select * from moved)
    group by t.bucket, t.match_id
), target as materialized (
    select
        bucket, match_id, newest_status, status, opened,
        newest_epoch > $3::bigint and newest_status <> status as changes,
        case
            when newest_epoch > $3::bigint and newest_status <> status then $4::bigint
            when newest_epoch > $3::bigint then newest_epoch
            else since
        end as changed
    from past
), nobodys as (
    delete from :"schema".match m
    where m.generation_id = $1::integer and m.shard = $2::integer
        and (m.bucket, m.match_id) in (select * from moved)
        and not exists (
            select from past where past.bucket = m.bucket and past.match_id = m.match_id)
), righted as (
    update :"schema".match_transition t set from_status = null
    from (
        select distinct on (match_id, bucket) epoch, ordinal, from_status, reason
        from :"schema".match_transition
        where generation_id = $1::integer and shard = $2::integer
            and (bucket, match_id) in (select * from moved)
        order by match_id, bucket, epoch, ordinal
    ) first
    where t.generation_id = $1::integer and t.shard = $2::integer
        and t.epoch = first.epoch and t.ordinal = first.ordinal
        and first.epoch > $3::bigint and first.from_status is not null
        and first.reason <> 'rebuild' and not exists (
            select from :"schema".epoch e
            where e.generation_id = $1::integer and e.shard = $2::integer
                and e.epoch = first.epoch and e.kind = 'rebuild')
), moved_back as (
    update :"schema".match m set
        status = target.status,
        changed_epoch = target.changed,
        opened_epoch = coalesce(target.opened, m.opened_epoch),
        row_hash = substr(m.row_hash, 1, 16) || substr(sha256(
            int4send(32) || m.match_id
            || int4send(octet_length(target.status)) || convert_to(target.status, 'UTF8')
            || int4send(8) || int8send(target.changed)), 1, 16)
    from target
    where m.generation_id = $1::integer and m.shard = $2::integer
        and m.bucket = target.bucket and m.match_id = target.match_id
)
insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select
    $1::integer, $2::integer, $4::bigint,
    row_number() over (
        order by status in ('matched', 'provisional', 'final'), match_id) - 1,
    bucket, match_id, newest_status, status, 'restored'
from target
where changes and exists (
    select from :"schema".match m
    where m.generation_id = $1::integer and m.shard = $2::integer
        and m.bucket = target.bucket and m.match_id = target.match_id)
