-- Moves offsets and watermarks. Parameter: out of orderness.
update :"schema".sql_offset o
set position = s.position, watermark = greatest(o.watermark, s.highest - $1::interval)
from (
    select side, max(position) as position, max(event_time) as highest from stage group by side
) s
where s.side = o.side
