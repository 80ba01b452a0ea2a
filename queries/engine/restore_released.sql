-- Lets released records be read again that were read after the position to which the shard has gone
-- back.
update :"schema".quarantine q set status = 'released'
where q.generation_id = $1::integer and q.shard = $2::integer and q.status = 'resolved'
    and q.released_seq > coalesce((
        select nullif(o.position, '')::bigint from :"schema".source_offset o
        where o.generation_id = q.generation_id and o.shard = q.shard and o.side = q.side
            and o.source = 'quarantine'), 0)
