-- Marks the buffer rows that a newer revision replaced. They are looked up one by one through the
-- primary key, whatever the planner believes of the table.
update :"schema".buffer b set retired_epoch = $3::bigint
from (
    select x.place
    from unnest($4::text[], $5::text[], $6::bigint[]) as r (side, id, added_epoch)
    cross join lateral (
        select y.ctid as place from :"schema".buffer y
        where y.generation_id = $1::integer and y.shard = $2::integer
            and y.side = r.side and y.id = r.id and y.added_epoch = r.added_epoch
        offset 0) x
) f
where b.ctid = f.place
