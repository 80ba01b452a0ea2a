-- Totals of the active results of base $1 and candidate $2, of those that validate_compare looks at
-- with the same $3, $4 and $5. Gives what each counts by, the name, and the two values.
with result as not materialized (
    select m.*, m.generation_id = $2::integer as candidate
    from :"schema".match m
    where m.generation_id in ($1::integer, $2::integer)
        and m.status in ('matched', 'provisional', 'final')
        and ($3::timestamptz is null or m.horizon < $3::timestamptz)
        and ($4::timestamptz is null or m.left_time >= $4::timestamptz
                and m.left_time < $5::timestamptz
            or m.right_time >= $4::timestamptz and m.right_time < $5::timestamptz)
), grouped as materialized (
    select candidate, status, kind, verdict,
        (least(left_time, right_time) at time zone 'UTC')::date as day,
        count(*) as results
    from result
    group by 1, 2, 3, 4, 5
), ranked as (
    select *, dense_rank() over (order by day desc) as rank from grouped
), field as materialized (
    select r.candidate, d ->> 'field' as field, count(*) as differing,
        sum(:"schema".number_at(d, 'difference')) as difference
    from result r
    cross join lateral json_array_elements(
        case json_typeof(r.differences) when 'array' then r.differences end) as d
    where r.differences is not null
    group by 1, 2
), total (place, by, name, candidate, value) as (
    select 1, 'results', 'all', candidate, results from grouped
    union all
    select 2, 'keys', 'distinct', candidate, count(*)
    from (select candidate, key from result group by candidate, key) k
    group by candidate
    union all
    select 3, 'status', status, candidate, results from grouped
    union all
    select 4, 'kind', kind, candidate, results from grouped
    union all
    select 5, 'verdict', verdict, candidate, results from grouped where verdict is not null
    union all
    select 6, 'differing', field, candidate, differing from field
    union all
    select 7, 'difference', field, candidate, difference from field where difference is not null
    union all
    select 8, 'day', case when rank <= 400 then to_char(day, 'YYYY-MM-DD') else 'earlier' end,
        candidate, results
    from ranked
)
select by, name,
    coalesce(sum(value) filter (where not candidate), 0)::text,
    coalesce(sum(value) filter (where candidate), 0)::text
from total
group by place, by, name
order by place, name collate "C"
