-- What a candidate is compared with, and how far: its status, its base (0 for none), what serves,
-- its number of shards; what explains all differences where its rule is another one than the base's;
-- the range of member times that an interval settles, and the horizon before which neither changes a
-- result any more, null when both stand at the very same positions and watermark in all shards.
with candidate as (
    select g.*, s.generation_id as serving,
        (b.rule_version, b.rule) is distinct from (g.rule_version, g.rule) as other_rule,
        greatest((g.rule ->> 'before_us')::bigint, (g.rule ->> 'after_us')::bigint, 0)
            * interval '1 microsecond' as reach
    from :"schema".generation g
    left join :"schema".serving s using (reconciliation)
    left join :"schema".generation b on b.generation_id = g.base
    where g.generation_id = $1::integer
), heads as (
    select count(*) as shards, coalesce(min(h.watermark), '-infinity') as low,
        max(h.watermark) as high
    from candidate c
    join :"schema".shard h on h.generation_id in (c.generation_id, c.base)
)
select
    c.status, coalesce(c.base, 0), coalesce(c.serving, 0), c.shards,
    case when c.other_rule then 'rule ' || c.rule_version end,
    c.interval_from - c.reach, c.interval_to + c.reach,
    case when h.low < h.high or exists (
        select from :"schema".source_offset o
        where o.generation_id in (c.generation_id, c.base)
        group by o.side, o.source, o.partition
        having min(o.position) <> max(o.position) or count(*) <> h.shards)
    then h.low end
from candidate c
cross join heads h
