-- Takes what these rows say for right. It is for rows that are withdrawn, and written whole when
-- they are published again.
update :"schema".match m
set row_hash = :"schema".match_said(m.generation_id, m.shard, m) || substr(m.row_hash, 17)
where m.generation_id = $1::integer and m.shard = $2::integer and m.match_id = any($3::bytea[])
    and m.status not in ('matched', 'provisional', 'final')
