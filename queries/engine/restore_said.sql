-- Takes what these rows say for right. It is for rows that are withdrawn, and written whole when
-- they are published again.
update :"schema".match m set row_hash = said.hash || substr(m.row_hash, 17)
from unnest($3::bytea[], $4::bytea[]) as said (match_id, hash)
where m.generation_id = $1::integer and m.shard = $2::integer and m.match_id = said.match_id
    and m.status not in ('matched', 'provisional', 'final')
