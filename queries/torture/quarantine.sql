-- The open quarantine: side, reason and a digest of the record as it was read.
select concat_ws(' ', side, reason, encode(sha256(raw), 'hex'))
from :"schema".quarantine
where status = 'open'
