-- Writes the epoch's manifest.
insert into :"schema".epoch (
    generation_id, shard, epoch, parent_epoch, attempt_id, clock, watermark_before,
    watermark_after, sources, read, accepted, duplicate, stale, late, quarantined, out_of_shard,
    ahead, paired, provisional_opened, retracted, superseded, final, expired, buffered,
    started_at)
values (
    $1::integer, $2::integer, $3::bigint, $4::bigint, $5::uuid, $6::timestamptz,
    $7::timestamptz, $8::timestamptz, $9::jsonb, $10::bigint, $11::bigint, $12::bigint,
    $13::bigint, $14::bigint, $15::bigint, $16::bigint, $17::bigint, $18::bigint, $19::bigint,
    $20::bigint, $21::bigint, $22::bigint, $23::bigint, $24::bigint, now())
