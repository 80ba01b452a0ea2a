-- What is stored about events and keys and in ranges of horizons, in one snapshot. Returns, told
-- apart by their part: row (a live buffer row), result (an active result row), expired (a row of the
-- first range whose end changes no result) and due (for a range, how many of its rows were read and up
-- to which horizon; the other columns are null).
--
-- Of the rows that are due most change nothing: only one of the sides in $12 that has no partner, and
-- when its window closes no result at all, is looked up with all of its key.
--
-- Every look-up is a lateral subquery behind "offset 0": the planner can't turn it into a join that
-- reads the whole table. And each can use one index only: while the planner knows nothing of a
-- generation it takes the condition on (generation_id, shard) alone for one row, and reads the
-- whole shard for each look-up. Hence "is not distinct from", which no index serves, and the
-- expression of the index on horizon.
--
-- A result that is withdrawn is no answer, unless it was withdrawn by hand: then its hash tells whoever
-- reads it.
with asked as materialized (
    select a.side, a.id from unnest($4::text[], $5::text[]) as a (side, id)
), by_id as materialized (
    select b.* from asked a
    cross join lateral (
        select x.* from :"schema".buffer x
        where x.generation_id = $1::integer and x.shard = $2::integer
            and x.side = a.side and x.id = a.id
            and x.retired_epoch is null and x.horizon >= $3::timestamptz
        offset 0) b
), due as materialized (
    select r.number, b.*, not b.deleted and b.side = any ($12::text[]) and not exists (
        select from :"schema".match x
        where b.side = 'left' and x.left_id = b.id
            and (x.status = 'matched' or r.number = 2 and x.status in ('provisional', 'final'))
            and x.generation_id is not distinct from $1::integer
            and x.shard is not distinct from $2::integer
        union all
        select from :"schema".match x
        where b.side = 'right' and x.right_id = b.id
            and (x.status = 'matched' or r.number = 2 and x.status in ('provisional', 'final'))
            and x.generation_id is not distinct from $1::integer
            and x.shard is not distinct from $2::integer
        offset 0) as alone
    from unnest($7::timestamptz[], $8::timestamptz[]) with ordinality as r (low, high, number)
    cross join lateral (
        select x.* from :"schema".buffer x
        where (x.generation_id::bigint << 32 | x.shard) = ($1::bigint << 32 | $2::integer)
            and x.horizon >= greatest(r.low, $3::timestamptz) and x.horizon < r.high
            and x.retired_epoch is null and x.spilled
        order by x.horizon
        fetch first ($9::bigint) rows with ties) b
), wanted as (
    select k.key from unnest($6::text[]) as k (key) where k.key <> ''
    union
    select i.key from by_id i where i.key <> ''
    union
    select d.key from due d where d.alone
), found as materialized (
    select b.* from wanted w
    cross join lateral (
        select
            x.side, x.id, x.revision, x.key, x.event_time, x.deleted, x.attributes, x.horizon,
            x.source, x.partition, x.position, x.added_epoch, x.row_hash
        from :"schema".buffer x
        where hashtextextended(x.key, 0) = hashtextextended(w.key, 0) and x.key = w.key
            and x.horizon >= $3::timestamptz and x.retired_epoch is null and x.spilled
            and x.generation_id is not distinct from $1::integer
            and x.shard is not distinct from $2::integer
        offset 0) b
    union all
    -- A row without a key has no partners and comes alone.
    select
        side, id, revision, key, event_time, deleted, attributes, horizon, source, partition,
        position, added_epoch, row_hash
    from by_id where key = ''
), member as materialized (
    select side, id from found
    union select side, id from asked
    union select r.side, r.id from unnest($10::text[], $11::text[]) as r (side, id)
), near as materialized (
    select m.* from member e
    cross join lateral (
        select x.* from :"schema".match x
        where e.side = 'left' and x.left_id = e.id
            and (x.status in ('matched', 'provisional', 'final')
                or substr(x.row_hash, 17)
                    <> :"schema".match_stands(x.match_id, x.status, x.changed_epoch))
            and x.generation_id is not distinct from $1::integer
            and x.shard is not distinct from $2::integer
        union all
        select x.* from :"schema".match x
        where e.side = 'right' and x.right_id = e.id
            and (x.status in ('matched', 'provisional', 'final')
                or substr(x.row_hash, 17)
                    <> :"schema".match_stands(x.match_id, x.status, x.changed_epoch))
            and x.generation_id is not distinct from $1::integer
            and x.shard is not distinct from $2::integer
        offset 0) m
), partner as (
    -- A partner may have left the buffer; what else it is paired with decides whether it is alone
    -- when this pair goes.
    (select 'left'::text as side, left_id as id from near where left_id is not null
    union
    select 'right'::text, right_id from near where right_id is not null)
    except
    select side, id from member
), result as (
    select distinct on (match_id) *
    from (
        select * from near
        union all
        select m.* from partner e
        cross join lateral (
            select x.* from :"schema".match x
            where e.side = 'left' and x.left_id = e.id
                and (x.status in ('matched', 'provisional', 'final')
                    or substr(x.row_hash, 17)
                        <> :"schema".match_stands(x.match_id, x.status, x.changed_epoch))
                and x.generation_id is not distinct from $1::integer
                and x.shard is not distinct from $2::integer
            union all
            select x.* from :"schema".match x
            where e.side = 'right' and x.right_id = e.id
                and (x.status in ('matched', 'provisional', 'final')
                    or substr(x.row_hash, 17)
                        <> :"schema".match_stands(x.match_id, x.status, x.changed_epoch))
                and x.generation_id is not distinct from $1::integer
                and x.shard is not distinct from $2::integer
            offset 0) m) every
    order by match_id
)
select
    'row'::text as part, key, horizon, side, id, revision, event_time, deleted,
    attributes, source, partition, position, added_epoch,
    null::integer as bucket, null::bytea as match_id, null::text as kind, null::text as status,
    null::text as left_id, null::bigint as left_revision, null::text as right_id,
    null::bigint as right_revision, null::timestamptz as left_time,
    null::timestamptz as right_time, null::text as verdict, null::json as differences,
    null::bigint as changed_epoch, row_hash
from found
union all
select
    'expired', key, horizon, side, id, revision, event_time, deleted,
    attributes, source, partition, position, added_epoch,
    null, null, null, null, null, null, null, null, null, null, null, null, null, row_hash
from due
where number = 1 and not alone
union all
select
    'result', key, horizon, null, null, null, null, null, null, null, null, null, null,
    bucket, match_id, kind, status, left_id, left_revision, right_id, right_revision, left_time,
    right_time, verdict, differences, changed_epoch, row_hash
from result
union all
select
    'due', null, max(horizon), null, null, count(*), null, null, null, null, number::integer,
    null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
from due
group by number
