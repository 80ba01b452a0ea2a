-- The state and the results. Every table that a shard owns leads its primary key with
-- (generation_id, shard), and no constraint crosses shards. Indexes are few on purpose: each one
-- costs on every epoch, so each says what it is for. None but the primary keys leads with
-- (generation_id, shard): without statistics the planner takes that pair alone for one row, and
-- would read a whole shard through whichever index it leads. Ids and keys compare as bytes.
-- +goose Up
-- One statement to goose, which would cut at a semicolon or a dash in the schema's name.
-- +goose StatementBegin
create table :"schema".reconciliation (
    name text primary key,
    created_at timestamptz not null default now()
);
comment on table :"schema".reconciliation is 'One named configuration: a left source, a right source and a rule.';
comment on column :"schema".reconciliation.name is 'Name from the configuration.';
comment on column :"schema".reconciliation.created_at is 'When the first worker registered it.';

create table :"schema".generation (
    generation_id integer primary key generated always as identity,
    reconciliation text not null references :"schema".reconciliation,
    rule_version text not null check (rule_version <> ''),
    rule jsonb not null,
    shards integer not null check (shards > 0),
    created_at timestamptz not null default now(),
    kind text not null default 'full' check (kind in ('full', 'interval')),
    status text not null
        check (status in ('candidate', 'serving', 'retired', 'merged', 'abandoned', 'purged')),
    status_at timestamptz not null default now(),
    base integer references :"schema".generation,
    interval_from timestamptz,
    interval_to timestamptz,
    catch_up json,
    promoted_epoch bigint,
    constraint generation_of_an_interval check (
        (kind = 'interval') = (interval_from is not null and interval_to is not null))
);
comment on table :"schema".generation is 'One complete set of state and results of a reconciliation.';
comment on column :"schema".generation.generation_id is 'Number of the generation, over all reconciliations.';
comment on column :"schema".generation.reconciliation is 'The reconciliation it belongs to.';
comment on column :"schema".generation.rule_version is 'Version of the rule; enters every identity.';
comment on column :"schema".generation.rule is 'The rule as first run; another rule under the same version is refused.';
comment on column :"schema".generation.shards is 'Number of shards over the key hash; fixed for the generation.';
comment on column :"schema".generation.created_at is 'When it was created.';
comment on column :"schema".generation.kind is 'full: built over all that the sources have; interval: over a range of event times, to be merged into its base.';
comment on column :"schema".generation.status is 'candidate: being built, seen by nobody; serving; retired: served, and can again; merged: an interval whose differences its base took over; abandoned; purged: its rows are deleted.';
comment on column :"schema".generation.status_at is 'Since when it has that status.';
comment on column :"schema".generation.base is 'The generation that served when it was begun, and that it is compared with; null for the first.';
comment on column :"schema".generation.interval_from is 'Of an interval: the first event time that it settles.';
comment on column :"schema".generation.interval_to is 'Of an interval: the event time before which it settles.';
comment on column :"schema".generation.catch_up is 'Where the base stood when it was begun: {watermark, partitions}. Until it has read that far its watermark is held, so that nothing is late.';
comment on column :"schema".generation.promoted_epoch is 'The epoch with which it began to serve: earlier transitions were seen by nobody. 0 for the first, null while it has never served.';

create table :"schema".serving (
    reconciliation text primary key references :"schema".reconciliation,
    generation_id integer not null references :"schema".generation,
    since timestamptz not null default now()
);
comment on table :"schema".serving is 'Which generation of a reconciliation the views show.';
comment on column :"schema".serving.reconciliation is 'The reconciliation.';
comment on column :"schema".serving.generation_id is 'The generation served.';
comment on column :"schema".serving.since is 'When it began to serve.';

create table :"schema".shard (
    generation_id integer not null references :"schema".generation,
    shard integer not null check (shard >= 0),
    epoch bigint not null default 0 check (epoch >= 0),
    fencing_token bigint not null default 0,
    attempt_id uuid,
    worker text,
    lease_until timestamptz not null default '-infinity',
    requested_by text,
    watermark timestamptz not null default '-infinity',
    purged_epoch bigint not null default 0,
    primary key (generation_id, shard)
) with (fillfactor = 50);
comment on table :"schema".shard is 'One row a shard: the fence every epoch passes and the low watermark it leaves.';
comment on column :"schema".shard.generation_id is 'The generation.';
comment on column :"schema".shard.shard is 'Number of the shard, from 0.';
comment on column :"schema".shard.epoch is 'The newest committed epoch; numbers only grow. 0 before the first.';
comment on column :"schema".shard.fencing_token is 'Grows with each take-over; a commit under an older token is refused.';
comment on column :"schema".shard.attempt_id is 'The attempt that holds the shard.';
comment on column :"schema".shard.worker is 'Host and process of the worker that holds the shard; of the one that may take it next when it was handed over.';
comment on column :"schema".shard.lease_until is 'Until then, by the clock of this database, no other worker may take the shard; each commit and heartbeat extends it. -infinity when it was released.';
comment on column :"schema".shard.requested_by is 'Worker that asks the holder to hand the shard over, because it has fewer than its share.';
comment on column :"schema".shard.watermark is 'Low watermark: event time up to which both sides are believed complete.';
comment on column :"schema".shard.purged_epoch is 'The oldest epoch that can be gone back to: buffer rows that only earlier ones need are purged. 0 while none are.';

create table :"schema".attempt (
    generation_id integer not null,
    shard integer not null,
    attempt_id uuid not null,
    fencing_token bigint not null,
    worker text not null,
    from_epoch bigint not null,
    restored_epoch bigint,
    restored_from text check (restored_from in ('epoch', 'archive')),
    damage jsonb,
    started_at timestamptz not null default now(),
    ended_at timestamptz,
    outcome text,
    primary key (generation_id, shard, attempt_id)
);
comment on table :"schema".attempt is 'One row per run of a worker over a shard.';
comment on column :"schema".attempt.generation_id is 'The generation.';
comment on column :"schema".attempt.shard is 'The shard.';
comment on column :"schema".attempt.attempt_id is 'Identity of the run; each manifest names the attempt that wrote it.';
comment on column :"schema".attempt.fencing_token is 'The token it took the shard with; grows again when it reconnects.';
comment on column :"schema".attempt.worker is 'Host and process.';
comment on column :"schema".attempt.from_epoch is 'The epoch it found and went on from.';
comment on column :"schema".attempt.restored_epoch is 'The epoch it fell back to because a newer one did not verify; null when it went on from from_epoch.';
comment on column :"schema".attempt.restored_from is 'What it fell back to: a retained epoch or an archive.';
comment on column :"schema".attempt.damage is 'Array of {table, row, what}: what did not verify when it took the shard.';
comment on column :"schema".attempt.started_at is 'When it took the shard.';
comment on column :"schema".attempt.ended_at is 'When it left; null while it runs, or when it was killed.';
comment on column :"schema".attempt.outcome is 'How it ended: done, stopped, handed over, fenced or the error.';

create table :"schema".source_offset (
    generation_id integer not null,
    shard integer not null,
    side text collate "C" not null check (side in ('left', 'right')),
    source text collate "C" not null,
    partition integer not null,
    position text not null,
    watermark timestamptz not null,
    idle boolean not null default false,
    last_event_at timestamptz not null,
    identity text not null,
    epoch bigint not null,
    primary key (generation_id, shard, side, source, partition)
) with (fillfactor = 50);
comment on table :"schema".source_offset is 'How far each source partition has been read; moves with the results in one transaction.';
comment on column :"schema".source_offset.generation_id is 'The generation.';
comment on column :"schema".source_offset.shard is 'The shard.';
comment on column :"schema".source_offset.side is 'left or right.';
comment on column :"schema".source_offset.source is 'Name of the source.';
comment on column :"schema".source_offset.partition is 'Partition within the source.';
comment on column :"schema".source_offset.position is 'Position just past the last record read; its form is the source''s own.';
comment on column :"schema".source_offset.watermark is 'Highest accepted event time here minus out_of_orderness; -infinity before the first.';
comment on column :"schema".source_offset.idle is 'True while idle_after lets it stop holding the low watermark.';
comment on column :"schema".source_offset.last_event_at is 'Database clock of the epoch that last read a record here.';
comment on column :"schema".source_offset.identity is 'What the source said it is; another one at the next start is refused.';
comment on column :"schema".source_offset.epoch is 'The epoch that last moved this row.';

create table :"schema".epoch (
    generation_id integer not null,
    shard integer not null,
    epoch bigint not null check (epoch > 0),
    kind text not null check (kind in ('epoch', 'restore', 'rebuild')),
    parent_epoch bigint not null,
    attempt_id uuid not null,
    clock timestamptz not null,
    watermark_before timestamptz not null,
    watermark_after timestamptz not null,
    sources json not null,
    read bigint not null,
    accepted bigint not null,
    duplicate bigint not null,
    stale bigint not null,
    late bigint not null,
    quarantined bigint not null,
    out_of_shard bigint not null,
    ahead bigint not null,
    paired bigint not null,
    provisional_opened bigint not null,
    retracted bigint not null,
    superseded bigint not null,
    final bigint not null,
    expired bigint not null,
    buffered bigint not null check (buffered >= 0),
    buffer_digest bytea not null,
    output_digest bytea not null,
    replays bigint,
    replay_divergence json,
    parent_digest bytea not null,
    started_at timestamptz not null,
    committed_at timestamptz not null,
    digest bytea not null,
    status text not null default 'committed' check (status in ('committed', 'discarded')),
    primary key (generation_id, shard, epoch),
    constraint epoch_balanced check (
        read = accepted + duplicate + stale + late + quarantined + out_of_shard),
    constraint epoch_watermark_grows check (watermark_after >= watermark_before)
);
comment on table :"schema".epoch is 'The manifest: one row per committed epoch, written in its transaction.';
comment on column :"schema".epoch.generation_id is 'The generation that acknowledged it.';
comment on column :"schema".epoch.shard is 'The shard.';
comment on column :"schema".epoch.epoch is 'Number of the epoch; never used twice.';
comment on column :"schema".epoch.kind is 'epoch; restore: the step back to its parent; rebuild: what a promoted rebuild changed. The last two read nothing.';
comment on column :"schema".epoch.parent_epoch is 'The epoch it was built on.';
comment on column :"schema".epoch.attempt_id is 'The attempt that committed it.';
comment on column :"schema".epoch.clock is 'Database clock it was judged by (max_skew, max_ahead, idle_after).';
comment on column :"schema".epoch.watermark_before is 'Low watermark at its start: what is late was judged by this.';
comment on column :"schema".epoch.watermark_after is 'Low watermark at its end: what opens and closes was judged by this.';
comment on column :"schema".epoch.sources is 'Per partition: side, source, partition, from, to, watermark, idle, last_event_at, identity.';
comment on column :"schema".epoch.read is 'Records read = accepted + duplicate + stale + late + quarantined + out_of_shard.';
comment on column :"schema".epoch.accepted is 'Events that entered the state.';
comment on column :"schema".epoch.duplicate is 'Records that repeat a revision held, with the same content.';
comment on column :"schema".epoch.stale is 'Records of a revision lower than the one held.';
comment on column :"schema".epoch.late is 'Events set aside as corrections.';
comment on column :"schema".epoch.quarantined is 'Records set aside in the quarantine.';
comment on column :"schema".epoch.out_of_shard is 'Records that belong to other shards.';
comment on column :"schema".epoch.ahead is 'Accepted events further ahead of the clock than max_skew: they did not move the watermark.';
comment on column :"schema".epoch.paired is 'Pairs published.';
comment on column :"schema".epoch.provisional_opened is 'Unmatched rows opened as provisional.';
comment on column :"schema".epoch.retracted is 'Result rows retracted.';
comment on column :"schema".epoch.superseded is 'Result rows superseded.';
comment on column :"schema".epoch.final is 'Unmatched rows made final.';
comment on column :"schema".epoch.expired is 'Buffer rows whose horizon passed.';
comment on column :"schema".epoch.buffered is 'Live buffer rows after it.';
comment on column :"schema".epoch.buffer_digest is 'Digest of the set of live buffer rows after it: the sum of their hashes, as two 64-bit numbers.';
comment on column :"schema".epoch.output_digest is 'SHA-256 over its transitions in the order of identity; a replay must give the same.';
comment on column :"schema".epoch.replays is 'The discarded epoch whose ranges it read again; null otherwise.';
comment on column :"schema".epoch.replay_divergence is 'How its outputs differ from those of the epoch it replays; null when they are the same.';
comment on column :"schema".epoch.parent_digest is 'Digest of the manifest of its parent; zeros for the first.';
comment on column :"schema".epoch.digest is 'SHA-256 over all columns before this one.';
comment on column :"schema".epoch.status is 'committed, or discarded: a restore went back behind it.';
comment on column :"schema".epoch.started_at is 'When its transaction began.';
comment on column :"schema".epoch.committed_at is 'When its manifest was written, just before the commit.';

create table :"schema".buffer (
    generation_id integer not null,
    shard integer not null,
    side text collate "C" not null check (side in ('left', 'right')),
    id text collate "C" not null check (id <> ''),
    revision bigint not null,
    key text collate "C" not null,
    event_time timestamptz,
    deleted boolean not null,
    attributes json not null,
    horizon timestamptz not null,
    source text collate "C" not null,
    partition integer not null,
    position text not null,
    added_epoch bigint not null,
    retired_epoch bigint,
    spilled boolean not null default false,
    row_hash bytea not null check (octet_length(row_hash) = 16),
    primary key (generation_id, shard, side, id, added_epoch)
) with (fillfactor = 95);
-- Both serve a state that has outgrown the worker's memory, and cost nothing while it fits: the
-- partners of a key (keys come in random order, and their hashes make a smaller index that is
-- faster to fill), and what closes or expires next.
create index buffer_key on :"schema".buffer (hashtextextended(key, 0)) where spilled;
create index buffer_horizon on :"schema".buffer
    ((generation_id::bigint << 32 | shard), horizon) where spilled;
comment on table :"schema".buffer is 'Event revisions that wait. Live at epoch E: added_epoch <= E, not retired at or before E, horizon >= watermark of E; so expiry writes nothing.';
comment on column :"schema".buffer.generation_id is 'The generation.';
comment on column :"schema".buffer.shard is 'The shard.';
comment on column :"schema".buffer.side is 'left or right.';
comment on column :"schema".buffer.id is 'Event id.';
comment on column :"schema".buffer.revision is 'Event revision.';
comment on column :"schema".buffer.key is 'Join key; a list of fields is length-prefixed. Empty only on a tombstone without one.';
comment on column :"schema".buffer.event_time is 'Event time; null only on a tombstone without one.';
comment on column :"schema".buffer.deleted is 'A tombstone: held so that older revisions stay stale.';
comment on column :"schema".buffer.attributes is 'Canonical JSON of the unmapped fields, numbers by their exact text.';
comment on column :"schema".buffer.horizon is 'The row leaves when the low watermark passes this.';
comment on column :"schema".buffer.source is 'Source it came from.';
comment on column :"schema".buffer.partition is 'Partition within the source.';
comment on column :"schema".buffer.position is 'Source position just past it.';
comment on column :"schema".buffer.added_epoch is 'Epoch that added the row.';
comment on column :"schema".buffer.row_hash is 'First 16 bytes of SHA-256 over the columns up to added_epoch.';
comment on column :"schema".buffer.spilled is 'The row need not be in the worker''s memory: it can be looked up by key and by horizon.';
comment on column :"schema".buffer.retired_epoch is 'Epoch in which a newer revision replaced it; null while it has not been.';

create table :"schema".match (
    generation_id integer not null,
    shard integer not null,
    bucket integer not null,
    match_id bytea not null check (octet_length(match_id) = 32),
    kind text not null check (kind in ('pair', 'left_only', 'right_only')),
    status text not null
        check (status in ('matched', 'provisional', 'final', 'retracted', 'superseded')),
    left_id text collate "C",
    left_revision bigint,
    right_id text collate "C",
    right_revision bigint,
    key text collate "C" not null,
    left_time timestamptz,
    right_time timestamptz,
    horizon timestamptz not null,
    verdict text check (verdict in ('agree', 'differ')),
    differences json,
    opened_epoch bigint not null,
    changed_epoch bigint not null,
    row_hash bytea not null check (octet_length(row_hash) = 32),
    primary key (generation_id, shard, bucket, match_id),
    constraint match_kind_has_members check (
        (kind <> 'right_only') = (left_id is not null)
        and (kind <> 'left_only') = (right_id is not null))
) with (fillfactor = 90);
-- The results of an event: whether it has a partner, whether it is sealed.
create index match_left on :"schema".match (left_id)
    where left_id is not null;
create index match_right on :"schema".match (right_id)
    where right_id is not null;
comment on table :"schema".match is 'Result rows of every status. Upserted on the identity.';
comment on column :"schema".match.generation_id is 'The generation.';
comment on column :"schema".match.shard is 'The shard.';
comment on column :"schema".match.bucket is 'The quarter of an hour, counted from 1970 UTC, that horizon is in: results of one time are together in the primary key, where an identity alone would scatter them.';
comment on column :"schema".match.match_id is 'SHA-256 of the members'' ids and revisions and the rule version; see match_identity.';
comment on column :"schema".match.kind is 'pair, left_only or right_only.';
comment on column :"schema".match.status is 'matched, provisional or final are active; retracted and superseded are withdrawn.';
comment on column :"schema".match.left_id is 'Left event; null on right_only.';
comment on column :"schema".match.left_revision is 'Revision of the left event.';
comment on column :"schema".match.right_id is 'Right event; null on left_only.';
comment on column :"schema".match.right_revision is 'Revision of the right event.';
comment on column :"schema".match.key is 'Join key.';
comment on column :"schema".match.left_time is 'Event time of the left event.';
comment on column :"schema".match.right_time is 'Event time of the right event.';
comment on column :"schema".match.horizon is 'The row can no longer change by live work once the low watermark has passed this.';
comment on column :"schema".match.verdict is 'agree or differ on a pair whose fields are compared.';
comment on column :"schema".match.differences is 'Array of {field, left, right, difference, tolerance, within} of the compared fields that are not equal, within tolerance or not; null when all are equal. Amounts by their exact text; difference is right minus left.';
comment on column :"schema".match.opened_epoch is 'Epoch that first published it.';
comment on column :"schema".match.changed_epoch is 'Epoch of its newest transition.';
comment on column :"schema".match.row_hash is '16 bytes of SHA-256 over what the row said when it was last published (all columns but status and epochs), then 16 over match_id, status and changed_epoch.';

create table :"schema".match_transition (
    generation_id integer not null,
    shard integer not null,
    epoch bigint not null,
    ordinal integer not null,
    bucket integer not null,
    match_id bytea not null,
    from_status text,
    to_status text not null,
    reason text not null,
    primary key (generation_id, shard, epoch, ordinal)
);
comment on table :"schema".match_transition is 'Every change of status of every result, the first included.';
comment on column :"schema".match_transition.generation_id is 'The generation.';
comment on column :"schema".match_transition.shard is 'The shard.';
comment on column :"schema".match_transition.epoch is 'Epoch that made it.';
comment on column :"schema".match_transition.ordinal is 'Order within the epoch; withdrawals come before publications.';
comment on column :"schema".match_transition.bucket is 'Of the result, which is looked up by it and match_id.';
comment on column :"schema".match_transition.match_id is 'The result.';
comment on column :"schema".match_transition.from_status is 'Status before; null when the row is new.';
comment on column :"schema".match_transition.to_status is 'Status after.';
comment on column :"schema".match_transition.reason is 'joined, unmatched, horizon_passed, partner_arrived, partner_withdrew, revised, deleted; restored: an earlier epoch was gone back to; rebuild: a rebuild was promoted, from_status is then that of what served before.';

create table :"schema".correction (
    generation_id integer not null,
    shard integer not null,
    epoch bigint not null,
    ordinal integer not null,
    side text collate "C" not null check (side in ('left', 'right')),
    id text collate "C" not null,
    revision bigint not null,
    key text collate "C" not null,
    event_time timestamptz,
    deleted boolean not null,
    attributes json not null,
    reason text not null check (reason in ('past_horizon', 'sealed_revision')),
    interval_from timestamptz not null,
    interval_to timestamptz not null,
    source text collate "C" not null,
    partition integer not null,
    position text not null,
    row_hash bytea not null check (octet_length(row_hash) = 16),
    status text not null default 'open' check (status in ('open', 'resolved', 'discarded')),
    resolved_by integer,
    primary key (generation_id, shard, epoch, ordinal)
);
comment on table :"schema".correction is 'Events that came too late for live state. A rebuild settles them.';
comment on column :"schema".correction.generation_id is 'The generation.';
comment on column :"schema".correction.shard is 'The shard.';
comment on column :"schema".correction.epoch is 'Epoch that set it aside.';
comment on column :"schema".correction.ordinal is 'Order within the epoch.';
comment on column :"schema".correction.side is 'left or right.';
comment on column :"schema".correction.id is 'Event id.';
comment on column :"schema".correction.revision is 'Event revision.';
comment on column :"schema".correction.key is 'Join key; empty on a tombstone without one.';
comment on column :"schema".correction.event_time is 'Event time; null on a tombstone without one.';
comment on column :"schema".correction.deleted is 'A tombstone.';
comment on column :"schema".correction.attributes is 'Canonical JSON of the unmapped fields.';
comment on column :"schema".correction.reason is 'past_horizon: later than lateness allows. sealed_revision: its older revision has left the buffer.';
comment on column :"schema".correction.interval_from is 'Earliest event time whose results it can touch.';
comment on column :"schema".correction.interval_to is 'Latest event time whose results it can touch.';
comment on column :"schema".correction.source is 'Source it came from.';
comment on column :"schema".correction.partition is 'Partition within the source.';
comment on column :"schema".correction.position is 'Source position just past it.';
comment on column :"schema".correction.status is 'open until a promotion resolves it; discarded: its epoch was, and the replay sets it aside again.';
comment on column :"schema".correction.row_hash is 'First 16 bytes of SHA-256 over the columns before this one.';
comment on column :"schema".correction.resolved_by is 'Generation whose promotion resolved it.';

create table :"schema".quarantine (
    generation_id integer not null,
    shard integer not null,
    epoch bigint not null,
    ordinal integer not null,
    side text collate "C" not null check (side in ('left', 'right')),
    source text collate "C" not null,
    partition integer not null,
    position text not null,
    reason text not null,
    raw bytea not null,
    row_hash bytea not null check (octet_length(row_hash) = 16),
    status text not null default 'open'
        check (status in ('open', 'released', 'resolved', 'discarded')),
    repaired bytea,
    released_seq bigint,
    released_at timestamptz,
    primary key (generation_id, shard, epoch, ordinal)
);
create unique index quarantine_released on :"schema".quarantine
    (generation_id, shard, side, released_seq) where released_seq is not null;
comment on table :"schema".quarantine is 'Records that could not be taken, whole. Nothing is lost: release feeds them back.';
comment on column :"schema".quarantine.generation_id is 'The generation.';
comment on column :"schema".quarantine.shard is 'The shard.';
comment on column :"schema".quarantine.epoch is 'Epoch that set it aside.';
comment on column :"schema".quarantine.ordinal is 'Order within the epoch.';
comment on column :"schema".quarantine.side is 'left or right.';
comment on column :"schema".quarantine.source is 'Source it came from.';
comment on column :"schema".quarantine.partition is 'Partition within the source.';
comment on column :"schema".quarantine.position is 'Source position just past it.';
comment on column :"schema".quarantine.reason is 'Why it could not be taken.';
comment on column :"schema".quarantine.raw is 'The record as it was read, cut at max_event_bytes.';
comment on column :"schema".quarantine.status is 'open; released: waits to be read again; resolved: was read again; discarded: its epoch was, and the replay sets it aside again.';
comment on column :"schema".quarantine.row_hash is 'First 16 bytes of SHA-256 over the columns before this one.';
comment on column :"schema".quarantine.repaired is 'The record to read instead of raw; null to read raw again.';
comment on column :"schema".quarantine.released_seq is 'Order of release over all shards: the position of the source quarantine.';
comment on column :"schema".quarantine.released_at is 'When it was released.';

create table :"schema".validation (
    generation_id integer not null references :"schema".generation,
    number integer not null,
    base integer not null references :"schema".generation,
    scope text not null check (scope in ('all', 'final')),
    passed boolean not null,
    only_base bigint not null,
    only_candidate bigint not null,
    in_both bigint not null,
    explained bigint not null,
    unexplained bigint not null,
    totals json not null,
    differences json not null,
    accepted_by text,
    accepted_why text,
    validated_at timestamptz not null default now(),
    primary key (generation_id, number),
    constraint validation_accepted check ((accepted_by is null) = (accepted_why is null))
);
comment on table :"schema".validation is 'Comparisons of a candidate with the generation that serves. The newest counts.';
comment on column :"schema".validation.generation_id is 'The candidate.';
comment on column :"schema".validation.number is 'Counts its validations from 1.';
comment on column :"schema".validation.base is 'The generation it was compared with.';
comment on column :"schema".validation.scope is 'all: both had read equally far, and every active result was compared; final: only those that neither can change any more.';
comment on column :"schema".validation.passed is 'True when nothing is unexplained, no row of the candidate is damaged and it has read what the base has.';
comment on column :"schema".validation.only_base is 'Results that only the base has.';
comment on column :"schema".validation.only_candidate is 'Results that only the candidate has.';
comment on column :"schema".validation.in_both is 'Results that both have.';
comment on column :"schema".validation.explained is 'Differences that an open correction or the new rule version explains.';
comment on column :"schema".validation.unexplained is 'The other differences.';
comment on column :"schema".validation.totals is 'Array of {by, name, base, candidate}, by results, keys, status, kind, verdict, differing and difference (how often a compared field is not equal, and the sum of its differences) and day, in UTC.';
comment on column :"schema".validation.differences is 'Array of at most 1000 {kind, match_id, result, left_id, left_revision, right_id, right_revision, key, changed, base, candidate, explained_by}; kind is only_base, only_candidate or changed. Before them, with what in words, those of kind damage and coverage, which nobody can accept; then the unexplained ones.';
comment on column :"schema".validation.accepted_by is 'Who accepted unexplained differences; null when nobody did.';
comment on column :"schema".validation.accepted_why is 'Why.';
comment on column :"schema".validation.validated_at is 'When.';
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
drop table :"schema".validation;
drop table :"schema".quarantine;
drop table :"schema".correction;
drop table :"schema".match_transition;
drop table :"schema".match;
drop table :"schema".buffer;
drop table :"schema".epoch;
drop table :"schema".source_offset;
drop table :"schema".attempt;
drop table :"schema".shard;
drop table :"schema".serving;
drop table :"schema".generation;
drop table :"schema".reconciliation;
-- +goose StatementEnd
