-- The contract with analysts. Views show the serving generation; nothing here writes.
-- +goose Up
-- +goose StatementBegin
create function :"schema".match_identity(
    left_id text, left_revision text, right_id text, right_revision text, rule_version text
) returns text language sql immutable parallel safe as $$
    select encode(sha256(convert_to(
        length(coalesce(left_id, '')) || ':' || coalesce(left_id, '')
        || '|' || length(coalesce(left_revision, '')) || ':' || coalesce(left_revision, '')
        || '|' || length(coalesce(right_id, '')) || ':' || coalesce(right_id, '')
        || '|' || length(coalesce(right_revision, '')) || ':' || coalesce(right_revision, '')
        || '|' || length(rule_version) || ':' || rule_version, 'UTF8')), 'hex')
$$;
comment on function :"schema".match_identity(text, text, text, text, text) is
    'Identity of a result: hex SHA-256 of LEN:left_id|LEN:left_revision|LEN:right_id|LEN:right_revision|LEN:rule_version, lengths in code points; the absent side of an unmatched row is null or empty.';

create function :"schema".number_at(attributes json, path text)
returns numeric language sql immutable parallel safe as $$
    select case when attributes #>> string_to_array(path, '.')
            ~ '^-?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,3})?$'
            and length(attributes #>> string_to_array(path, '.')) <= 1000
        then (attributes #>> string_to_array(path, '.'))::numeric end
$$;
comment on function :"schema".number_at(json, text) is
    'The number at a dotted path of the attributes, exactly; null where there is none.';

create function :"schema".match_said(generation integer, shard integer, m :"schema".match)
returns bytea language sql immutable parallel safe as $$
    select substr(sha256(string_agg(
        coalesce(int4send(octet_length(c.value)) || c.value, int4send(-1)), ''::bytea
        order by c.place)), 1, 16)
    from (values
        (1, int4send(generation)), (2, int4send(shard)),
        (3, int4send(m.bucket)), (4, m.match_id), (5, convert_to(m.kind, 'UTF8')),
        (6, convert_to(m.left_id, 'UTF8')), (7, int8send(m.left_revision)),
        (8, convert_to(m.right_id, 'UTF8')), (9, int8send(m.right_revision)),
        (10, convert_to(m.key, 'UTF8')),
        (11, timestamptz_send(m.left_time)), (12, timestamptz_send(m.right_time)),
        (13, timestamptz_send(m.horizon)),
        (14, convert_to(m.verdict, 'UTF8')), (15, convert_to(m.differences::text, 'UTF8'))
    ) as c (place, value)
$$;
comment on function :"schema".match_said(integer, integer, :"schema".match) is
    'The first half of row_hash: of what a result row says, as one of a generation and shard.';

create function :"schema".match_stands(match_id bytea, status text, changed_epoch bigint)
returns bytea language sql immutable parallel safe as $$
    select substr(sha256(
        int4send(32) || match_id
        || int4send(octet_length(status)) || convert_to(status, 'UTF8')
        || int4send(8) || int8send(changed_epoch)), 1, 16)
$$;
comment on function :"schema".match_stands(bytea, text, bigint) is
    'The second half of row_hash: of where a result row stands.';

-- The views below share this one; a column that a view leaves out costs it nothing.
create view :"schema".result_detail as
select
    g.reconciliation,
    m.bucket,
    m.match_id,
    m.kind,
    m.status,
    m.left_id,
    m.left_revision,
    m.right_id,
    m.right_revision,
    m.key,
    m.left_time,
    m.right_time,
    m.verdict,
    m.differences::jsonb as differences,
    case when m.kind = 'pair' then greatest(
        (select count(*) from :"schema".match o
         where o.generation_id = m.generation_id and o.shard = m.shard
            and o.left_id = m.left_id and o.status = 'matched'),
        (select count(*) from :"schema".match o
         where o.generation_id = m.generation_id and o.shard = m.shard
            and o.right_id = m.right_id and o.status = 'matched'))
    else 0 end as partners,
    m.status = 'final' or (m.status = 'matched' and h.watermark > m.horizon) as is_final,
    m.horizon as deadline,
    h.watermark,
    (select string_agg(o.side || '/' || o.source || '/' || o.partition, ', '
            order by o.side, o.source, o.partition)
     from (select i.*, min(i.watermark) over () as lowest from :"schema".source_offset i
         where i.generation_id = m.generation_id and i.shard = m.shard and not i.idle) o
     where o.watermark = o.lowest and o.watermark < 'infinity') as held_by,
    case
        when m.kind = 'pair' then format(
            'its members can change until the watermark (%s) passes %s', h.watermark, m.horizon)
        when m.status = 'final' then 'nothing: its horizon has passed'
        else format('a %s event with key %s at %s to %s, until the watermark (%s) passes %s',
            case m.kind when 'left_only' then 'right' else 'left' end, m.key,
            coalesce(m.left_time - w.before, m.right_time - w.after),
            coalesce(m.left_time + w.after, m.right_time + w.before),
            h.watermark, m.horizon)
    end as waits_for,
    m.opened_epoch,
    m.changed_epoch,
    e.committed_at as changed_at,
    m.generation_id,
    m.shard
from :"schema".serving s
join :"schema".generation g using (generation_id)
join :"schema".shard h using (generation_id)
join :"schema".match m using (generation_id, shard)
cross join lateral (select
    (g.rule ->> 'before_us')::bigint * interval '1 microsecond' as before,
    (g.rule ->> 'after_us')::bigint * interval '1 microsecond' as after) w
left join :"schema".epoch e on e.generation_id = m.generation_id
    and e.shard = m.shard and e.epoch = m.changed_epoch
where m.status in ('matched', 'provisional', 'final');
comment on view :"schema".result_detail is 'What the views of results are made of; read those.';

create view :"schema".results as
select
    reconciliation, encode(match_id, 'hex') as match_id, kind, status, left_id, left_revision,
    right_id, right_revision, key, left_time, right_time, verdict, differences, partners, is_final,
    opened_epoch, changed_epoch, changed_at, shard
from :"schema".result_detail;
comment on view :"schema".results is 'Active result rows of the serving generation: matched, provisional and final.';
comment on column :"schema".results.match_id is 'Identity, in hex.';
comment on column :"schema".results.partners is 'How many partners the busier member of a pair has; over 1 is ambiguous. 0 on unmatched rows.';
comment on column :"schema".results.is_final is 'True when live work can no longer change the row.';
comment on column :"schema".results.changed_at is 'When the epoch of its newest transition was written; null once that manifest is purged.';

create view :"schema".results_final as
select * from :"schema".results where is_final;
comment on view :"schema".results_final is 'Active rows that can no longer change.';

create view :"schema".results_provisional as
select * from :"schema".results where not is_final;
comment on view :"schema".results_provisional is 'Active rows that may still change.';

create view :"schema".waiting as
select
    reconciliation, encode(match_id, 'hex') as match_id, kind, status, left_id, left_revision,
    right_id, right_revision, key, least(left_time, right_time) as event_time, deadline, watermark,
    case when isfinite(deadline) and isfinite(watermark) then deadline - watermark end as remaining,
    held_by, waits_for, opened_epoch, shard
from :"schema".result_detail
where not is_final;
comment on view :"schema".waiting is 'Active rows that may still change, with what they wait for.';
comment on column :"schema".waiting.event_time is 'The earlier time of its members.';
comment on column :"schema".waiting.deadline is 'Event time: the row is final when the low watermark has passed this.';
comment on column :"schema".waiting.remaining is 'Event time still to go; null while the watermark is infinite.';
comment on column :"schema".waiting.held_by is 'The source partitions whose watermark is the lowest, as side/source/partition.';

create view :"schema".events as
select
    g.reconciliation, b.side, b.id, b.revision, b.key, b.event_time, b.deleted, b.attributes,
    b.horizon, b.source, b.partition, b.position, b.added_epoch, b.retired_epoch,
    e.committed_at as arrived_at,
    b.retired_epoch is null as newest,
    b.retired_epoch is null and b.horizon >= h.watermark as live,
    h.watermark,
    b.shard
from :"schema".serving s
join :"schema".generation g using (generation_id)
join :"schema".shard h using (generation_id)
join :"schema".buffer b using (generation_id, shard)
left join :"schema".epoch e on e.generation_id = b.generation_id
    and e.shard = b.shard and e.epoch = b.added_epoch;
comment on view :"schema".events is 'Event revisions, for as long as their buffer rows are kept.';
comment on column :"schema".events.arrived_at is 'When the epoch that took it was written, after a full rebuild that of the rebuild; null once that manifest is purged.';
comment on column :"schema".events.newest is 'True unless a newer revision replaced it.';
comment on column :"schema".events.live is 'True while it can still meet a partner: the newest revision, its horizon not passed.';

create view :"schema".reconciliations as
select
    g.reconciliation, g.generation_id, g.rule_version,
    g.rule ->> 'join' as join_kind,
    (g.rule ->> 'before_us')::bigint * interval '1 microsecond' as before,
    (g.rule ->> 'after_us')::bigint * interval '1 microsecond' as after,
    (g.rule ->> 'lateness_us')::bigint * interval '1 microsecond' as lateness,
    g.rule ->> 'provisional' as provisional,
    g.shards, s.since
from :"schema".serving s
join :"schema".generation g using (generation_id);
comment on view :"schema".reconciliations is 'The reconciliations, each with the rule of its serving generation.';

create view :"schema".result_history as
select
    g.reconciliation,
    encode(t.match_id, 'hex') as match_id,
    m.kind,
    m.left_id,
    m.left_revision,
    m.right_id,
    m.right_revision,
    m.left_time,
    m.right_time,
    t.from_status,
    t.to_status,
    t.reason,
    t.epoch,
    t.ordinal,
    e.committed_at as at,
    m.opened_epoch,
    m.changed_epoch,
    t.shard,
    t.generation_id
from :"schema".generation g
join :"schema".shard h using (generation_id)
join :"schema".match_transition t using (generation_id, shard)
-- Before the planner knows the tables it takes a shard for one row, and compares each transition with
-- each result; "+ 0" leaves it only look-ups by the whole key, and joins.
left join :"schema".match m on m.generation_id = t.generation_id + 0 and m.shard = t.shard + 0
    and m.bucket = t.bucket and m.match_id = t.match_id
left join :"schema".epoch e on e.generation_id = t.generation_id + 0 and e.shard = t.shard + 0
    and e.epoch = t.epoch
where g.status in ('serving', 'retired') and t.epoch >= g.promoted_epoch;
comment on view :"schema".result_history is 'Every transition of what served then. (shard, epoch, ordinal) only grows, also where another generation begins to serve, so a consumer can follow it exactly once.';
comment on column :"schema".result_history.opened_epoch is 'Of the result; "epoch between opened_epoch and changed_epoch" makes looking up one result fast.';
comment on column :"schema".result_history.changed_epoch is 'Of the result: no transition of it is newer.';

create view :"schema".unmatched as
select
    r.reconciliation,
    encode(r.match_id, 'hex') as match_id,
    t.side,
    t.id,
    t.revision,
    r.key,
    r.status,
    t.event_time,
    now() - t.event_time as age,
    case
        when now() - t.event_time < interval '1 day' then 'under 1 d'
        when now() - t.event_time < interval '8 days' then '1-7 d'
        when now() - t.event_time < interval '31 days' then '8-30 d'
        else 'over 30 d'
    end as age_bucket,
    r.deadline,
    r.waits_for,
    (select b.attributes from :"schema".buffer b
     where b.generation_id = r.generation_id and b.shard = r.shard and b.side = t.side
        and b.id = t.id and b.revision = t.revision
     order by b.added_epoch desc limit 1) as attributes,
    r.opened_epoch,
    r.shard
from :"schema".result_detail r
cross join lateral (select
    case r.kind when 'left_only' then 'left' else 'right' end as side,
    coalesce(r.left_id, r.right_id) as id,
    coalesce(r.left_revision, r.right_revision) as revision,
    coalesce(r.left_time, r.right_time) as event_time) t
where r.kind <> 'pair';
comment on view :"schema".unmatched is 'Unmatched rows, provisional and final, with their age by the clock and what they wait for.';
comment on column :"schema".unmatched.age is 'Now minus the event time.';
comment on column :"schema".unmatched.deadline is 'The row becomes final when the low watermark passes this.';
comment on column :"schema".unmatched.attributes is 'Attributes of the event, while its buffer row is kept.';

create view :"schema".breaks as
select
    r.reconciliation, r.match_id, r.left_id, r.left_revision, r.right_id, r.right_revision, r.key,
    r.left_time, r.right_time,
    d.field, d."left", d."right", d.difference, d.tolerance,
    r.partners, r.is_final, r.changed_epoch, r.shard
from :"schema".results r
cross join lateral jsonb_to_recordset(r.differences)
    as d(field text, "left" text, "right" text, difference text, tolerance text, within boolean)
where r.kind = 'pair' and r.verdict = 'differ' and not d.within;
comment on view :"schema".breaks is 'Pairs whose compared fields differ, a row per difference; amounts by their exact text.';

create view :"schema".corrections as
select
    g.reconciliation,
    c.shard || '-' || c.epoch || '-' || c.ordinal as correction_id,
    c.side, c.id, c.revision, c.key, c.event_time, c.deleted, c.attributes, c.reason,
    c.interval_from, c.interval_to, c.source, c.partition, c.position, c.epoch,
    e.watermark_before as watermark,
    c.status, c.resolved_by, e.committed_at as recorded_at, c.shard, c.generation_id
from :"schema".generation g
join :"schema".correction c using (generation_id)
left join :"schema".epoch e on e.generation_id = c.generation_id
    and e.shard = c.shard and e.epoch = c.epoch
where (g.status = 'serving' and c.status <> 'discarded')
    or (g.status = 'retired' and c.status = 'resolved');
comment on view :"schema".corrections is 'Events that came too late for live state, open and resolved, with the watermark that refused them. What a retired generation left open, the one that serves has judged itself.';

create view :"schema".quarantined as
select
    g.reconciliation,
    q.shard || '-' || q.epoch || '-' || q.ordinal as quarantine_id,
    q.side, q.source, q.partition, q.position, q.reason, q.raw,
    encode(q.raw, 'escape') as raw_text,
    q.status, q.repaired, q.released_at, q.epoch, e.committed_at as recorded_at, q.shard
from :"schema".serving s
join :"schema".generation g using (generation_id)
join :"schema".quarantine q using (generation_id)
left join :"schema".epoch e on e.generation_id = q.generation_id
    and e.shard = q.shard and e.epoch = q.epoch
where q.status <> 'discarded';
comment on view :"schema".quarantined is 'Records set aside whole, with the reason; raw_text escapes what is not printable. A generation that was rebuilt shows what it found bad itself; what was released before stays released.';

create view :"schema".epochs as
select
    g.reconciliation, e.epoch, e.kind, e.status, e.parent_epoch, e.attempt_id, e.watermark_before,
    e.watermark_after, e.read, e.accepted, e.duplicate, e.stale, e.late, e.quarantined,
    e.out_of_shard, e.ahead, e.paired, e.provisional_opened, e.retracted, e.superseded, e.final,
    e.expired, e.buffered, e.sources::jsonb as sources,
    encode(e.buffer_digest, 'hex') as buffer_digest,
    encode(e.output_digest, 'hex') as output_digest,
    encode(e.digest, 'hex') as digest,
    e.replays, e.replay_divergence::jsonb as replay_divergence,
    e.clock, e.started_at, e.committed_at,
    e.committed_at - e.started_at as duration, e.shard
from :"schema".serving s
join :"schema".generation g using (generation_id)
join :"schema".epoch e using (generation_id);
comment on view :"schema".epochs is 'The manifests of the serving generation.';
comment on column :"schema".epochs.duration is 'From the begin of the transaction to its manifest.';

create view :"schema".attempts as
select
    g.reconciliation, a.attempt_id, a.worker, a.started_at, a.ended_at, a.outcome,
    a.from_epoch, a.restored_epoch, a.restored_from, a.damage, a.fencing_token,
    n.epochs, n.first_epoch, n.last_epoch, n.read, n.accepted, n.late, n.quarantined, n.paired,
    n.provisional_opened, n.final, n.retracted, n.superseded, n.replayed, n.divergences,
    (select count(distinct t.match_id) from :"schema".match_transition t
     where t.generation_id = a.generation_id and t.shard = a.shard
        and t.epoch between n.first_epoch and n.last_epoch
        and (select e.attempt_id from :"schema".epoch e
             where e.generation_id = t.generation_id and e.shard = t.shard and e.epoch = t.epoch)
            = a.attempt_id) as identities,
    (select count(*) from :"schema".match_transition t
     where t.generation_id = a.generation_id and t.shard = a.shard
        and t.epoch between n.first_epoch and n.last_epoch
        and t.from_status = 'provisional' and t.to_status in ('retracted', 'superseded')
        and (select e.attempt_id from :"schema".epoch e
             where e.generation_id = t.generation_id and e.shard = t.shard and e.epoch = t.epoch)
            = a.attempt_id) as provisional_withdrawn,
    l.buffered, l.watermark_after as watermark, l.sources::jsonb as sources,
    encode(l.buffer_digest, 'hex') as buffer_digest,
    encode(l.digest, 'hex') as digest,
    a.shard
from :"schema".serving s
join :"schema".generation g using (generation_id)
join :"schema".attempt a using (generation_id)
left join lateral (
    select
        count(*) as epochs, min(e.epoch) as first_epoch, max(e.epoch) as last_epoch,
        sum(e.read)::bigint as read, sum(e.accepted)::bigint as accepted,
        sum(e.late)::bigint as late, sum(e.quarantined)::bigint as quarantined,
        sum(e.paired)::bigint as paired,
        sum(e.provisional_opened)::bigint as provisional_opened,
        sum(e.final)::bigint as final, sum(e.retracted)::bigint as retracted,
        sum(e.superseded)::bigint as superseded, count(e.replays) as replayed,
        count(e.replay_divergence) as divergences
    from :"schema".epoch e
    where e.generation_id = a.generation_id and e.shard = a.shard
        and e.attempt_id = a.attempt_id) n on true
left join :"schema".epoch l on l.generation_id = a.generation_id and l.shard = a.shard
    and l.epoch = n.last_epoch;
comment on view :"schema".attempts is 'Runs of workers over shards: what each went on from, did, left behind, and how it ended. Counts are of all its epochs, discarded ones included.';
comment on column :"schema".attempts.epochs is 'Epochs it committed.';
comment on column :"schema".attempts.first_epoch is 'The first of them.';
comment on column :"schema".attempts.last_epoch is 'The last of them.';
comment on column :"schema".attempts.replayed is 'How many of them replayed discarded ones.';
comment on column :"schema".attempts.divergences is 'How many replays gave other outputs.';
comment on column :"schema".attempts.identities is 'How many results it changed.';
comment on column :"schema".attempts.provisional_withdrawn is 'How many provisional rows it took back.';
comment on column :"schema".attempts.buffered is 'Live buffer rows after its last epoch.';
comment on column :"schema".attempts.watermark is 'Low watermark after its last epoch.';
comment on column :"schema".attempts.sources is 'Source positions after its last epoch, as in the manifest.';
comment on column :"schema".attempts.buffer_digest is 'Digest of the buffer after its last epoch.';
comment on column :"schema".attempts.digest is 'Digest of the manifest of its last epoch.';

create view :"schema".lag as
select
    g.reconciliation, o.side, o.source, o.partition, o.position, o.watermark,
    h.watermark as low_watermark,
    not o.idle and o.watermark < 'infinity' and o.watermark = min(o.watermark)
        filter (where not o.idle) over (partition by o.generation_id, o.shard) as holds,
    case when isfinite(o.watermark) then
        max(o.watermark) filter (where isfinite(o.watermark))
            over (partition by o.generation_id, o.shard) - o.watermark
    end as behind,
    o.idle,
    case when o.idle then o.last_event_at end as idle_since,
    o.last_event_at, o.epoch, o.shard
from :"schema".serving s
join :"schema".generation g using (generation_id)
join :"schema".shard h using (generation_id)
join :"schema".source_offset o using (generation_id, shard);
comment on view :"schema".lag is 'Per source partition: how far it was read and whether it holds the low watermark back.';
comment on column :"schema".lag.holds is 'True for the partitions whose watermark is the lowest: they hold everything else back.';
comment on column :"schema".lag.behind is 'Event time between this partition and the furthest one.';
comment on column :"schema".lag.idle_since is 'When it last gave a record, if idle_after lets it stop holding the watermark.';

create view :"schema".rebuild_changes as
with rebuild as (
    select g.generation_id, g.reconciliation, g.rule_version, g.kind, s.generation_id as base,
        g.interval_from - r.reach as reach_from, g.interval_to + r.reach as reach_to
    from :"schema".generation g
    join :"schema".serving s using (reconciliation)
    cross join lateral (select interval '1 microsecond' * greatest(
        (g.rule ->> 'before_us')::bigint, (g.rule ->> 'after_us')::bigint, 0) as reach) r
    where g.status = 'candidate'
), base as (
    select r.generation_id as candidate, m.*
    from rebuild r
    join :"schema".match m on m.generation_id = r.base
        and m.status in ('matched', 'provisional', 'final')
        and (r.kind = 'full' or m.left_time >= r.reach_from and m.left_time < r.reach_to
            or m.right_time >= r.reach_from and m.right_time < r.reach_to)
), candidate as (
    select r.generation_id as candidate, m.*
    from rebuild r
    join :"schema".match m on m.generation_id = r.generation_id
        and m.status in ('matched', 'provisional', 'final')
        and (r.kind = 'full' or m.left_time >= r.reach_from and m.left_time < r.reach_to
            or m.right_time >= r.reach_from and m.right_time < r.reach_to)
)
select
    r.reconciliation, r.generation_id, r.rule_version,
    case when b.match_id is null then 'added' when c.match_id is null then 'removed'
        else 'changed' end as change,
    encode(coalesce(c.match_id, b.match_id), 'hex') as match_id,
    coalesce(c.kind, b.kind) as kind,
    coalesce(c.status, b.status) as status,
    coalesce(c.left_id, b.left_id) as left_id,
    coalesce(c.left_revision, b.left_revision) as left_revision,
    coalesce(c.right_id, b.right_id) as right_id,
    coalesce(c.right_revision, b.right_revision) as right_revision,
    coalesce(c.key, b.key) as key,
    coalesce(c.left_time, b.left_time) as left_time,
    coalesce(c.right_time, b.right_time) as right_time
from base b
full join candidate c on c.candidate = b.candidate
    and coalesce(c.left_id, '') = coalesce(b.left_id, '')
    and coalesce(c.left_revision, 0) = coalesce(b.left_revision, 0)
    and coalesce(c.right_id, '') = coalesce(b.right_id, '')
    and coalesce(c.right_revision, 0) = coalesce(b.right_revision, 0)
join rebuild r on r.generation_id = coalesce(c.candidate, b.candidate)
where (b.status, b.key, b.left_time, b.right_time, b.verdict, b.differences::text)
    is distinct from (c.status, c.key, c.left_time, c.right_time, c.verdict, c.differences::text);
comment on view :"schema".rebuild_changes is 'What would change if a candidate began to serve now: its active results against those served, by their members, so that another rule version shows only what it decides otherwise. What a candidate has not read yet shows as removed.';
comment on column :"schema".rebuild_changes.generation_id is 'The candidate.';
comment on column :"schema".rebuild_changes.rule_version is 'The rule version of the candidate.';
comment on column :"schema".rebuild_changes.change is 'added: only the candidate has it; removed: only what serves has it; changed: its status, key, times, verdict or differences are others.';
comment on column :"schema".rebuild_changes.match_id is 'Identity, in hex; of the candidate unless it is removed.';
comment on column :"schema".rebuild_changes.status is 'Status in the candidate; in what serves when it is removed.';

-- The other columns say what the column of the same name says in the table that the view shows.
do $comments$
declare
    here oid := (select typnamespace from pg_type
        where oid = pg_typeof(null:::"schema".serving)::oid);
    own jsonb := '{
        "match_id": "Identity, in hex.",
        "shard": "The shard that owns the row.",
        "reconciliation": "Name of the reconciliation.",
        "partners": "How many partners the busier member of a pair has; over 1 is ambiguous. 0 on unmatched rows.",
        "is_final": "True when live work can no longer change the row.",
        "changed_at": "When the epoch of its newest transition was written; null once that manifest is purged.",
        "deadline": "The row can no longer change once the low watermark has passed this.",
        "remaining": "Event time left until the deadline.",
        "held_by": "Partitions that hold the low watermark back.",
        "waits_for": "What could still change the row.",
        "watermark": "Low watermark.",
        "low_watermark": "Low watermark of the shard.",
        "at": "When the manifest of the epoch was written; null once it is purged.",
        "recorded_at": "When the manifest of the epoch was written; null once it is purged.",
        "correction_id": "Name of the correction: shard-epoch-ordinal.",
        "quarantine_id": "Name for tally quarantine release: shard-epoch-ordinal.",
        "raw_text": "The record with what is not printable escaped.",
        "age_bucket": "under 1 d, 1-7 d, 8-30 d or over 30 d, by age.",
        "field": "The compared field, by its path on the left side.",
        "left": "Value on the left side, by its exact text.",
        "right": "Value on the right side, by its exact text.",
        "difference": "Right minus left, exact; null unless both are numbers.",
        "tolerance": "The tolerance of the field, null when it must be equal.",
        "join_kind": "inner, left, right or full.",
        "before": "A left event at t matches right events from t - before.",
        "after": "A left event at t matches right events up to t + after.",
        "lateness": "How far behind the low watermark an event is still taken.",
        "provisional": "When an unmatched event is shown: eager, at-window-close or never.",
        "id": "Event id.",
        "revision": "Event revision.",
        "event_time": "Event time."
    }';
    c record;
begin
    -- Views on views take theirs in a later round.
    for round in 1 .. 3 loop
        for c in
            select v.relname, a.attname, coalesce(t.comment, own ->> a.attname) as comment
            from pg_class v
            join pg_attribute a on a.attrelid = v.oid and a.attnum > 0 and not a.attisdropped
            left join lateral (
                select d.description as comment
                from pg_depend n
                join pg_rewrite r on r.oid = n.objid and r.ev_class = v.oid
                join pg_attribute b on b.attrelid = n.refobjid and b.attname = a.attname
                join pg_description d on d.objoid = b.attrelid and d.objsubid = b.attnum
                    and d.classoid = 'pg_class'::regclass
                where n.refclassid = 'pg_class'::regclass and n.refobjid <> v.oid
                order by n.refobjid desc limit 1) t on true
            where v.relnamespace = here and v.relkind = 'v'
                and coalesce(t.comment, own ->> a.attname) is not null
                and col_description(v.oid, a.attnum) is null
            order by v.oid, a.attnum
        loop
            execute format('comment on column %s.%I.%I is %L',
                here::regnamespace, c.relname, c.attname, c.comment);
        end loop;
    end loop;
end
$comments$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
drop view :"schema".rebuild_changes;
drop view :"schema".lag;
drop view :"schema".attempts;
drop view :"schema".epochs;
drop view :"schema".quarantined;
drop view :"schema".corrections;
drop view :"schema".breaks;
drop view :"schema".unmatched;
drop view :"schema".result_history;
drop view :"schema".reconciliations;
drop view :"schema".events;
drop view :"schema".waiting;
drop view :"schema".results_provisional;
drop view :"schema".results_final;
drop view :"schema".results;
drop view :"schema".result_detail;
drop function :"schema".match_stands(bytea, text, bigint);
drop function :"schema".match_said(integer, integer, :"schema".match);
drop function :"schema".number_at(json, text);
drop function :"schema".match_identity(text, text, text, text, text);
-- +goose StatementEnd
