-- The open quarantine: side, reason and a digest of the record as it was read.
select concat_ws(' ', side, reason, md5(raw))
from :"schema".quarantine
where status = 'open'
