-- Writes the epoch's manifest. The last parameter is the columns before the times as the digest
-- takes them. Returns the digest.
insert into :"schema".epoch (
    generation_id, shard, epoch, kind, parent_epoch, attempt_id, clock, watermark_before,
    watermark_after, sources, read, accepted, duplicate, stale, late, quarantined, out_of_shard,
    ahead, paired, provisional_opened, retracted, superseded, final, expired, buffered,
    buffer_digest, output_digest, replays, replay_divergence, parent_digest, started_at,
    committed_at, digest)
select
    $1::integer, $2::integer, $3::bigint, $4::text, $5::bigint, $6::uuid, $7::timestamptz,
    $8::timestamptz, $9::timestamptz, $10::json, $11::bigint, $12::bigint, $13::bigint,
    $14::bigint, $15::bigint, $16::bigint, $17::bigint, $18::bigint, $19::bigint, $20::bigint,
    $21::bigint, $22::bigint, $23::bigint, $24::bigint, $25::bigint, $26::bytea, $27::bytea,
    $28::bigint, $29::json, $30::bytea, t.started_at, t.committed_at,
    sha256($31::bytea
        || int4send(8) || timestamptz_send(t.started_at)
        || int4send(8) || timestamptz_send(t.committed_at))
from (select now() as started_at, clock_timestamp() as committed_at offset 0) t
returning digest
