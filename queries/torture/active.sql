-- The active rows as the batch join writes them: status, left id/revision, right id/revision.
select concat_ws(' ', status, coalesce(left_id || '/' || left_revision, '-'),
    coalesce(right_id || '/' || right_revision, '-'))
from :"schema".results
