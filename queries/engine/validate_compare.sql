-- Compares the active results of two generations: base $1, candidate $2. Only results whose horizon
-- is before $3 are compared, and only those with a member time in [$4, $5); null for all. With $6
-- they are compared by their members, as an identity names the rule version too, and $6 is what
-- explains every difference; null compares by identity.
--
-- Otherwise an open correction of the base explains a difference when the event it set aside is a
-- member; and that an unmatched row came or went where its event has a partner in a pair that came
-- or went, which is explained itself. A shared key explains nothing.
--
-- Gives the counts of results that only the base has and that only the candidate has, of explained
-- and unexplained differences, and at most $7 of the differences, the unexplained ones first.
with base as (
    select m.*, case when $6::text is null then m.match_id
        else decode(:"schema".match_identity(m.left_id, m.left_revision::text, m.right_id,
            m.right_revision::text, ''), 'hex') end as name
    from :"schema".match m
    where m.generation_id = $1::integer and m.status in ('matched', 'provisional', 'final')
        and ($3::timestamptz is null or m.horizon < $3::timestamptz)
        and ($4::timestamptz is null or m.left_time >= $4::timestamptz
                and m.left_time < $5::timestamptz
            or m.right_time >= $4::timestamptz and m.right_time < $5::timestamptz)
), candidate as (
    select m.*, case when $6::text is null then m.match_id
        else decode(:"schema".match_identity(m.left_id, m.left_revision::text, m.right_id,
            m.right_revision::text, ''), 'hex') end as name
    from :"schema".match m
    where m.generation_id = $2::integer and m.status in ('matched', 'provisional', 'final')
        and ($3::timestamptz is null or m.horizon < $3::timestamptz)
        and ($4::timestamptz is null or m.left_time >= $4::timestamptz
                and m.left_time < $5::timestamptz
            or m.right_time >= $4::timestamptz and m.right_time < $5::timestamptz)
), difference as materialized (
    select
        case when c.name is null then 'only_base' when b.name is null then 'only_candidate'
            else 'changed' end as kind,
        coalesce(c.match_id, b.match_id) as match_id,
        coalesce(c.kind, b.kind) as result,
        coalesce(c.left_id, b.left_id) as left_id,
        coalesce(c.left_revision, b.left_revision) as left_revision,
        coalesce(c.right_id, b.right_id) as right_id,
        coalesce(c.right_revision, b.right_revision) as right_revision,
        coalesce(c.key, b.key) as key,
        b.status as base_status, c.status as candidate_status,
        b.key as base_key, c.key as candidate_key,
        b.left_time as base_left_time, c.left_time as candidate_left_time,
        b.right_time as base_right_time, c.right_time as candidate_right_time,
        b.verdict as base_verdict, c.verdict as candidate_verdict,
        b.differences as base_differences, c.differences as candidate_differences
    from base b
    full join candidate c on c.name = b.name
    where b.name is null or c.name is null or b.status <> c.status or b.key <> c.key
        or b.left_time is distinct from c.left_time or b.right_time is distinct from c.right_time
        or b.verdict is distinct from c.verdict
        or b.differences::text is distinct from c.differences::text
), correction as (
    select side, id,
        (array_agg(shard || '-' || epoch || '-' || ordinal order by epoch, shard, ordinal))[1:10]
            as names
    from :"schema".correction
    where generation_id = $1::integer and status = 'open' and $6::text is null
    group by side, id
), direct as materialized (
    select d.*, array(select unnest(l.names) union select unnest(r.names) order by 1) as names
    from difference d
    left join correction l on l.side = 'left' and l.id = d.left_id
    left join correction r on r.side = 'right' and r.id = d.right_id
), partner as (
    select side, id, revision, (array_agg(distinct name order by name))[1:10] as names
    from direct d
    cross join lateral (values ('left_only', d.left_id, d.left_revision),
        ('right_only', d.right_id, d.right_revision)) as m (side, id, revision)
    cross join lateral unnest(d.names) as n (name)
    where d.result = 'pair' and d.kind <> 'changed'
    group by side, id, revision
), explained as materialized (
    select d.*, case when $6::text is not null then array[$6::text] when d.names <> '{}' then d.names
        else coalesce(p.names, '{}') end as explained_by
    from direct d
    left join partner p on p.side = d.result and p.id = coalesce(d.left_id, d.right_id)
        and p.revision = coalesce(d.left_revision, d.right_revision) and d.kind <> 'changed'
), shown as (
    select * from explained
    order by explained_by <> '{}', kind, match_id
    limit $7::integer
)
select
    count(*) filter (where kind = 'only_base'),
    count(*) filter (where kind = 'only_candidate'),
    count(*) filter (where explained_by <> '{}'),
    count(*) filter (where explained_by = '{}'),
    (select coalesce(json_agg(json_build_object(
        'match_id', encode(match_id, 'hex'),
        'kind', kind,
        'result', result,
        'left_id', left_id, 'left_revision', left_revision,
        'right_id', right_id, 'right_revision', right_revision,
        'key', key,
        'changed', case kind when 'changed' then array_remove(array[
            case when base_status <> candidate_status then 'status' end,
            case when base_key <> candidate_key then 'key' end,
            case when base_left_time is distinct from candidate_left_time then 'left_time' end,
            case when base_right_time is distinct from candidate_right_time then 'right_time' end,
            case when base_verdict is distinct from candidate_verdict then 'verdict' end,
            case when base_differences::text is distinct from candidate_differences::text
                then 'differences' end], null) end,
        'base', case when kind <> 'only_candidate' then json_build_object(
            'status', base_status, 'key', base_key, 'left_time', base_left_time,
            'right_time', base_right_time, 'verdict', base_verdict,
            'differences', base_differences) end,
        'candidate', case when kind <> 'only_base' then json_build_object(
            'status', candidate_status, 'key', candidate_key, 'left_time', candidate_left_time,
            'right_time', candidate_right_time, 'verdict', candidate_verdict,
            'differences', candidate_differences) end,
        'explained_by', explained_by)
        order by explained_by <> '{}', kind, match_id), '[]')
    from shown)
from explained
