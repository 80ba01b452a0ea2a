-- Takes the manifests of an archive.
copy :"schema".epoch (
    generation_id, shard, epoch, kind, parent_epoch, attempt_id, clock, watermark_before,
    watermark_after, sources, read, accepted, duplicate, stale, late, quarantined, out_of_shard,
    ahead, paired, provisional_opened, retracted, superseded, final, expired, buffered,
    buffer_digest, output_digest, replays, replay_divergence, parent_digest, started_at,
    committed_at, digest, status
) from stdin (format binary)
