-- Stores results of long ago: as many as the parameter says, in the generation that serves, one each
-- 15 ms of event time; of an epoch before the first, so that nobody looks for its manifest. Their
-- hashes are right.
insert into :"schema".match (
    generation_id, shard, bucket, match_id, kind, status, left_id, left_revision, right_id,
    right_revision, key, left_time, right_time, horizon, verdict, opened_epoch, changed_epoch,
    row_hash)
select
    r.generation_id, 0, r.bucket, r.match_id, 'pair', 'matched', r.left_id, 1, r.right_id, 1, r.key,
    r.at, r.at, r.at, 'agree', -1, -1,
    substr(sha256(
        int4send(4) || int4send(r.generation_id) || int4send(4) || int4send(0)
        || int4send(4) || int4send(r.bucket)
        || int4send(32) || r.match_id || int4send(4) || 'pair'::bytea
        || int4send(length(r.left_id)) || r.left_id::bytea || int4send(8) || int8send(1)
        || int4send(length(r.right_id)) || r.right_id::bytea || int4send(8) || int8send(1)
        || int4send(length(r.key)) || r.key::bytea
        || int4send(8) || timestamptz_send(r.at) || int4send(8) || timestamptz_send(r.at)
        || int4send(8) || timestamptz_send(r.at) || int4send(5) || 'agree'::bytea
        || int4send(-1)), 1, 16)
    || substr(sha256(
        int4send(32) || r.match_id || int4send(7) || 'matched'::bytea
        || int4send(8) || int8send(-1)), 1, 16)
from (
    select
        s.generation_id, floor(date_part('epoch', t.at) / 900)::integer as bucket,
        sha256(int8send(n)) as match_id, 'old-pay-' || n as left_id,
        'old-sig-' || n as right_id, 'acc-' || n as key, t.at
    from :"schema".serving s, generate_series(1, $1::bigint) as n,
        lateral (select '2020-01-01Z'::timestamptz + n * interval '15 ms') as t (at)) r
