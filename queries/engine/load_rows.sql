-- All live buffer rows of a shard. The table is read from end to end by one process: the rows of a
-- shard lie on every page of it, so that an index only adds to the pages that are read, and workers
-- in parallel take longer to hand the rows over than to read them. The planner sees neither before
-- it knows the table. Hence "is not distinct from", which no index serves, and a setting that
-- means nothing, made by a function that keeps workers out.
select
    key, horizon, side, id, revision, event_time, deleted, attributes, source, partition,
    position, added_epoch, row_hash
from :"schema".buffer
where generation_id is not distinct from $1::integer and shard is not distinct from $2::integer
    and retired_epoch is null and horizon >= $3::timestamptz
    and (select set_config('tally.serial', '', true)) is not null
