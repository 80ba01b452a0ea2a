-- Marks the released records that an epoch has read again.
update :"schema".quarantine set status = 'resolved'
where generation_id = $1::integer and shard = $2::integer and side = $3::text
    and released_seq > $4::bigint and released_seq <= $5::bigint and status = 'released'
