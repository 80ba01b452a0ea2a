-- Takes a shard for an attempt: the fencing token grows, so that whoever held the shard can no
-- longer commit. Waits for an epoch in its commit. Returns epoch, token and watermark; no row when
-- there is no such shard.
with taken as (
    update :"schema".shard
    set fencing_token = fencing_token + 1, attempt_id = $3::uuid, worker = $4::text
    where generation_id = $1::integer and shard = $2::integer
    returning generation_id, shard, epoch, fencing_token, watermark
), noted as (
    insert into :"schema".attempt
        (generation_id, shard, attempt_id, fencing_token, worker, from_epoch)
    select generation_id, shard, $3::uuid, fencing_token, $4::text, epoch from taken
)
select epoch, fencing_token, watermark from taken
