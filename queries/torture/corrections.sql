-- The open corrections: side and id/revision.
select concat_ws(' ', side, id || '/' || revision)
from :"schema".correction
where status = 'open'
