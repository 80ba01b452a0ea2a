-- Five reconciliations with every shape that the analysts' queries have to tell apart:
--   pay     full join, two shards; revisions, breaks, ties, withdrawals, a purged buffer row
--   done    left join, sealed: the watermark is at infinity
--   fresh   eager, nothing read on the right: the watermark is at -infinity
--   ages    unmatched rows on both sides of every age bound, by now()
--   gone    registered, without any row
-- Generation 1 of pay no longer serves; its rows must never be seen.
insert into :"schema".reconciliation (name)
values ('pay'), ('done'), ('fresh'), ('ages'), ('gone');

insert into :"schema".generation
    (generation_id, reconciliation, rule_version, rule, shards, status, promoted_epoch)
overriding system value
select g, r, v, json_build_object('join', j, 'before_us', 60000000, 'after_us', 600000000,
    'lateness_us', 300000000, 'provisional', p), s,
    case g when 1 then 'abandoned' else 'serving' end, case when g > 1 then 0 end
from (values
    (1, 'pay', 'v1', 'full', 'at-window-close', 1), (2, 'pay', 'v2', 'full', 'at-window-close', 2),
    (3, 'done', 'v1', 'left', 'never', 1), (4, 'fresh', 'v1', 'left', 'eager', 1),
    (5, 'ages', 'v1', 'full', 'eager', 1), (6, 'gone', 'v1', 'inner', 'never', 1)
) as x (g, r, v, j, p, s);

insert into :"schema".serving (reconciliation, generation_id, since)
values ('pay', 2, '2026-01-10 09:00Z'), ('done', 3, '2026-01-10 09:00Z'),
    ('fresh', 4, '2026-01-10 09:00Z'), ('ages', 5, '2026-01-10 09:00Z'),
    ('gone', 6, '2026-01-10 09:00Z');

insert into :"schema".shard
    (generation_id, shard, epoch, fencing_token, attempt_id, worker, watermark)
values
    (1, 0, 1, 1, null, null, '2026-01-09 12:00Z'),
    (2, 0, 3, 7, '00000000-0000-0000-0000-0000000000a7', 'host-a:4711', '2026-01-10 12:00Z'),
    (2, 1, 2, 2, null, null, '2026-01-10 11:00Z'),
    (3, 0, 1, 1, null, null, 'infinity'),
    (4, 0, 1, 1, null, null, '-infinity'),
    (5, 0, 1, 1, null, null, now() + interval '1 hour'),
    (6, 0, 0, 0, null, null, '-infinity');

insert into :"schema".attempt
    (generation_id, shard, attempt_id, fencing_token, worker, from_epoch, started_at, ended_at,
    outcome)
values
    (2, 0, '00000000-0000-0000-0000-0000000000a7', 7, 'host-a:4711', 0, '2026-01-10 12:09Z', null,
        null),
    (2, 1, '00000000-0000-0000-0000-0000000000b2', 2, 'host-b:12', 0, '2026-01-10 12:09Z',
        '2026-01-10 12:10:21Z', 'stopped');

insert into :"schema".source_offset
    (generation_id, shard, side, source, partition, position, watermark, idle, last_event_at,
    identity, epoch)
values
    (1, 0, 'left', 'old', 0, '1', '2026-01-09 12:00Z', false, '2026-01-09 12:00Z', 'i', 1),
    (2, 0, 'left', 'ledger', 0, '900', '2026-01-10 12:30Z', false, '2026-01-10 12:10:30Z', 'i', 3),
    (2, 0, 'left', 'ledger', 1, '40', '2026-01-10 10:00Z', true, '2026-01-10 12:10:00Z', 'i', 1),
    (2, 0, 'right', 'bank', 0, '700', '2026-01-10 12:00Z', false, '2026-01-10 12:10:10Z', 'i', 3),
    (2, 1, 'left', 'ledger', 0, '900', '2026-01-10 11:00Z', false, '2026-01-10 12:10:20Z', 'i', 2),
    (2, 1, 'right', 'bank', 0, '700', '2026-01-10 11:00Z', false, '2026-01-10 12:10:20Z', 'i', 2),
    (3, 0, 'left', 'a', 0, '5', 'infinity', false, '2026-01-10 12:00Z', 'i', 1),
    (3, 0, 'right', 'b', 0, '5', 'infinity', false, '2026-01-10 12:00Z', 'i', 1),
    (4, 0, 'left', 'a', 0, '5', '2026-01-10 12:00Z', false, '2026-01-10 12:00Z', 'i', 1),
    (4, 0, 'right', 'b', 0, '', '-infinity', false, '2026-01-10 12:00Z', 'i', 1);

insert into :"schema".epoch (
    generation_id, shard, epoch, kind, parent_epoch, attempt_id, clock, watermark_before,
    watermark_after, sources, read, accepted, duplicate, stale, late, quarantined, out_of_shard,
    ahead, paired, provisional_opened, retracted, superseded, final, expired, buffered,
    buffer_digest, output_digest, parent_digest, started_at, committed_at, digest)
select g, s, e, 'epoch', e - 1, '00000000-0000-0000-0000-0000000000a7', at, wb, wa,
    sources::json,
    accepted + duplicate + late + quarantined, accepted, duplicate, 0, late, quarantined, 0,
    0, 0, 0, 0, 0, 0, 0, buffered, '', '', '', at - interval '100 ms', at, ''
from (values
    (2, 0, 1, '2026-01-10 12:10:00Z'::timestamptz, '-infinity'::timestamptz,
        '2026-01-10 11:40Z'::timestamptz,
        '[{"side":"left","source":"ledger","from":"","to":"500"},
          {"side":"right","source":"bank","from":"","to":"100"}]', 10, 2, 0, 0, 10),
    (2, 0, 2, '2026-01-10 12:10:10Z', '2026-01-10 11:40Z', '2026-01-10 12:00Z',
        '[{"side":"left","source":"ledger","from":"500","to":"500"},
          {"side":"right","source":"bank","from":"100","to":"700"}]', 5, 3, 0, 0, 12),
    (2, 0, 3, '2026-01-10 12:10:30Z', '2026-01-10 12:00Z', '2026-01-10 12:00Z',
        '[{"side":"left","source":"ledger","from":"500","to":"900"},
          {"side":"right","source":"bank","from":"700","to":"700"}]', 4, 0, 2, 3, 9),
    (2, 1, 1, '2026-01-10 12:10:05Z', '-infinity', '2026-01-10 10:50Z',
        '[{"side":"right","source":"bank","from":"","to":"100"}]', 1, 4, 0, 0, 1),
    (2, 1, 2, '2026-01-10 12:10:20Z', '2026-01-10 10:50Z', '2026-01-10 11:00Z',
        '[{"side":"left","source":"ledger","from":"","to":"900"}]', 2, 0, 0, 0, 3),
    (3, 0, 1, '2026-01-10 12:00Z', '-infinity', 'infinity', '[]', 3, 0, 0, 0, 0),
    (4, 0, 1, '2026-01-10 12:00Z', '-infinity', '-infinity', '[]', 2, 0, 0, 0, 2)
) as x (g, s, e, at, wb, wa, sources, accepted, duplicate, late, quarantined, buffered);

insert into :"schema".buffer (
    generation_id, shard, side, id, revision, key, event_time, deleted, attributes, horizon,
    source, partition, position, added_epoch, retired_epoch, row_hash)
select g, s, side, id, revision, key, at, deleted, attributes::json,
    at + case side when 'left' then interval '15 min' else interval '6 min' end,
    case side when 'left' then 'ledger' else 'bank' end, 0, position, added, retired,
    substr(sha256(''), 1, 16)
from (values
    (1, 0, 'left', 'L1', 9, 'k1', '2026-01-10 11:00Z'::timestamptz, false, '{"amount":999}', '1',
        1, null::bigint),
    (2, 0, 'left', 'L1', 1, 'k1', '2026-01-10 11:00Z', false, '{"amount":10.00}', '10', 1, 2),
    (2, 0, 'left', 'L1', 2, 'k1', '2026-01-10 11:00Z', false, '{"amount":12.50}', '510', 2, null),
    (2, 0, 'right', 'R1', 1, 'k1', '2026-01-10 11:05Z', false, '{"amount":10.00}', '10', 1, null),
    (2, 0, 'left', 'L2', 1, 'k2', '2026-01-10 11:30Z', false, '{"amount":"20"}', '20', 1, null),
    (2, 0, 'right', 'R2', 1, 'k2', '2026-01-10 11:31Z', false, '{"amount":20.01}', '20', 1, null),
    (2, 0, 'right', 'R3', 1, 'k2', '2026-01-10 11:39Z', false, '{"amount":25}', '300', 2, null),
    (2, 0, 'left', 'L3', 1, 'k3', '2026-01-10 11:58Z', false, '{"amount":null}', '30', 3, null),
    (2, 0, 'left', 'L4', 1, 'k4', '2026-01-10 11:46Z', false, '{"amount":"abc"}', '40', 2, null),
    (2, 0, 'left', 'L6', 1, 'k6', '2026-01-10 11:47Z', false, '{"amount":6}', '60', 1, 3),
    (2, 0, 'left', 'L6', 2, 'k6', '2026-01-10 11:47Z', true, '{}', '610', 3, null),
    (2, 0, 'right', 'R7', 1, 'k7', '2026-01-10 10:00Z', false, '{"amount":7}', '70', 1, null),
    (2, 0, 'left', 'L8', 1, 'k8', '2026-01-10 11:55Z', false, '{"amount":5}', '80', 3, null),
    (2, 0, 'left', 'L9', 1, 'k8', '2026-01-10 11:55Z', false, '{"amount":5}', '90', 3, null),
    (2, 0, 'left', 'L10', 1, 'k8', '2026-01-10 11:56Z', false, '{"amount":5}', '95', 3, null),
    (2, 1, 'left', 'L20', 1, 'k"20', '2026-01-10 10:50Z', false,
        '{"amount":9007199254740993.10}', '20', 2, null),
    (2, 1, 'right', 'R20', 1, 'k"20', '2026-01-10 10:50Z', false,
        '{"amount":9007199254740993.10}', '20', 1, null),
    (2, 1, 'left', 'L21', 1, 'k21', '2026-01-10 10:45Z', false, '{"amount":0.1}', '21', 2, null),
    (4, 0, 'left', 'F1', 1, 'f', '2026-01-10 12:00Z', false, '{}', '5', 1, null)
) as x (g, s, side, id, revision, key, at, deleted, attributes, position, added, retired);

-- A tombstone of an event never seen, without time or key.
insert into :"schema".buffer
values (4, 0, 'left', 'F2', 1, '', null, true, '{}', '-infinity', 'ledger', 0, '6', 1, null, false,
    substr(sha256(''), 1, 16));

insert into :"schema".match (
    generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
    right_revision, key, left_time, right_time, horizon, verdict, differences, opened_epoch,
    changed_epoch, row_hash)
select g, s, floor(date_part('epoch', h.horizon) / 900), decode(repeat(id, 32), 'hex'),
    case when r is null then 'left_only' when l is null then 'right_only' else 'pair' end,
    status, l, lr, r, rr, key, lt, rt, h.horizon, verdict, differences::json, opened,
    changed, sha256('')
from (values
    (1, 0, '10', 'matched', 'L1', 9, 'R1', 9, 'k1', '2026-01-10 11:00Z'::timestamptz,
        '2026-01-10 11:05Z'::timestamptz, null, null, 1, 1),
    (2, 0, '11', 'superseded', 'L1', 1, 'R1', 1, 'k1', '2026-01-10 11:00Z', '2026-01-10 11:05Z',
        'agree', null, 1, 2),
    (2, 0, '12', 'matched', 'L1', 2, 'R1', 1, 'k1', '2026-01-10 11:00Z', '2026-01-10 11:05Z',
        'differ', '[{"field":"amount","left":"12.50","right":"10.00","difference":"-2.50",
            "tolerance":"0.01","within":false}]', 2, 2),
    (2, 0, '22', 'matched', 'L2', 1, 'R2', 1, 'k2', '2026-01-10 11:30Z', '2026-01-10 11:31Z',
        'agree', '[{"field":"amount","left":"20","right":"20.01","difference":"0.01",
            "tolerance":"0.01","within":true}]', 1, 1),
    (2, 0, '23', 'matched', 'L2', 1, 'R3', 1, 'k2', '2026-01-10 11:30Z', '2026-01-10 11:39Z',
        'differ', '[{"field":"amount","left":"20","right":"25","difference":"5",
            "tolerance":"0.01","within":false},
            {"field":"currency","left":"EUR","right":null,"difference":null,"tolerance":null,
            "within":false}]', 2, 2),
    (2, 0, '24', 'retracted', 'L2', 1, null, null, 'k2', '2026-01-10 11:30Z', null, null, null,
        1, 1),
    (2, 0, '40', 'provisional', 'L4', 1, null, null, 'k4', '2026-01-10 11:46Z', null, null, null,
        2, 2),
    (2, 0, '50', 'final', 'L5', 1, null, null, 'k5', '2026-01-10 11:00Z', null, null, null, 2, 2),
    (2, 0, '60', 'retracted', 'L6', 1, null, null, 'k6', '2026-01-10 11:47Z', null, null, null,
        2, 3),
    (2, 0, '70', 'final', null, null, 'R7', 1, 'k7', null, '2026-01-10 10:00Z', null, null, 1, 1),
    (2, 1, '20', 'matched', 'L20', 1, 'R20', 1, 'k"20', '2026-01-10 10:50Z', '2026-01-10 10:50Z',
        'agree', null, 2, 2),
    (2, 1, '21', 'provisional', 'L21', 1, null, null, 'k21', '2026-01-10 10:45Z', null, null, null,
        2, 2),
    (3, 0, '31', 'matched', 'D1', 1, 'E1', 1, 'd', '2026-01-10 11:00Z', '2026-01-10 11:01Z', null,
        null, 1, 1),
    (3, 0, '32', 'final', 'D2', -1, null, null, 'd', '2026-01-10 11:30Z', null, null, null, 1, 1),
    (4, 0, '41', 'provisional', 'F1', 1, null, null, 'f', '2026-01-10 12:00Z', null, null, null, 1,
        1)
) as x (g, s, id, status, l, lr, r, rr, key, lt, rt, verdict, differences, opened, changed)
cross join lateral (select greatest(lt + interval '15 min', rt + interval '6 min')) as h (horizon);

insert into :"schema".match (
    generation_id, shard, bucket, match_id, kind, status, right_id, right_revision, key, right_time,
    horizon, opened_epoch, changed_epoch, row_hash)
select 5, 0, floor(date_part('epoch', now() - age + interval '6 min') / 900),
    sha256(n::text::bytea), 'right_only', 'final', 'A' || n, 1, 'a', now() - age,
    now() - age + interval '6 min', 1, 1, sha256('')
from (values (1, interval '0'), (2, interval '23:59:59.999999'), (3, interval '24 hours'),
    (4, interval '191:59:59.999999'), (5, interval '192 hours'),
    (6, interval '743:59:59.999999'), (7, interval '744 hours'), (8, interval '9000 hours')
) as x (n, age);

insert into :"schema".match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select g, s, e, n, m.bucket, m.match_id, f, t, reason
from (values
    (1, 0, 1, 1, '10', null, 'matched', 'joined'),
    (2, 0, 1, 1, '11', null, 'matched', 'joined'),
    (2, 0, 1, 2, '22', null, 'matched', 'joined'),
    (2, 0, 1, 3, '70', null, 'final', 'horizon_passed'),
    (2, 0, 2, 1, '11', 'matched', 'superseded', 'revised'),
    (2, 0, 2, 2, '12', null, 'matched', 'joined'),
    (2, 0, 2, 3, '23', null, 'matched', 'joined'),
    (2, 0, 2, 4, '40', null, 'provisional', 'unmatched'),
    (2, 0, 2, 5, '50', null, 'final', 'horizon_passed'),
    (2, 0, 2, 6, '60', null, 'provisional', 'unmatched'),
    (2, 0, 3, 1, '60', 'provisional', 'retracted', 'deleted'),
    (2, 1, 2, 1, '20', null, 'matched', 'joined'),
    (2, 1, 2, 2, '21', null, 'provisional', 'unmatched')
) as x (g, s, e, n, id, f, t, reason)
join :"schema".match m on m.generation_id = g and m.shard = s
    and m.match_id = decode(repeat(id, 32), 'hex');

insert into :"schema".correction (
    generation_id, shard, epoch, ordinal, side, id, revision, key, event_time, deleted, attributes,
    reason, interval_from, interval_to, source, partition, position, status, resolved_by, row_hash)
select *, substr(sha256(''), 1, 16) from (values
    (2, 0, 3, 1, 'left', 'L5', 2, 'k5', '2026-01-10 11:00Z'::timestamptz, false,
        '{"amount":55}'::json, 'sealed_revision', '2026-01-10 10:59Z'::timestamptz,
        '2026-01-10 11:10Z'::timestamptz, 'ledger', 0, '700', 'open', null::integer),
    (2, 0, 3, 2, 'right', 'R30', 1, 'k4', '2026-01-10 11:00Z', false, '{"amount":30}',
        'past_horizon', '2026-01-10 10:50Z', '2026-01-10 11:01Z', 'bank', 0, '710', 'resolved', 2),
    (2, 0, 3, 10, 'left', 'L31', 1, '', null, true, '{}', 'sealed_revision', '-infinity',
        'infinity', 'ledger', 0, '720', 'open', null)) as x;

insert into :"schema".quarantine (
    generation_id, shard, epoch, ordinal, side, source, partition, position, reason, raw, status,
    repaired, released_seq, released_at, row_hash)
select *, substr(sha256(''), 1, 16) from (values
    (2, 0, 3, 1, 'left', 'ledger', 0, '800', 'bad_time',
        '{"payment_id":"L4","revision":2,"occurred_at":"yesterday"}'::bytea, 'open', null::bytea,
        null::bigint, null::timestamptz),
    (2, 0, 3, 2, 'left', 'ledger', 0, '810', 'nul_character', '\x7b226964223a224c400022',
        'open', null, null, null),
    (2, 0, 3, 3, 'right', 'bank', 0, '820', 'not_json', 'L4', 'released', '{"id":"L4"}', 1,
        '2026-01-10 13:00Z')) as x;
