-- Stores results of long ago: as many as the parameter says, in the generation that serves; of an
-- epoch before the first, so that nobody looks for its manifest.
insert into :"schema".match (
    generation_id, shard, match_id, kind, status, left_id, left_revision, right_id,
    right_revision, key, left_time, right_time, horizon, verdict, opened_epoch, changed_epoch,
    row_hash)
select
    s.generation_id, 0, sha256(int8send(n)), 'pair', 'matched', 'old-pay-' || n, 1,
    'old-sig-' || n, 1, 'acc-' || n, '2020-01-01', '2020-01-01', '2020-01-01', 'agree', -1, -1,
    sha256('')
from :"schema".serving s, generate_series(1, $1::bigint) as n
