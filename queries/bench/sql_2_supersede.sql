-- Withdraws the pairs of older revisions. Parameter: epoch.
with withdrawn as (
    update :"schema".sql_match m set status = 'superseded', changed_epoch = $1::bigint
    from (
        select x.bucket, x.match_id
        from news n
        join :"schema".sql_match x on x.generation_id = 1 and x.shard = 0
            and x.left_id = n.id and x.left_revision < n.revision
        where n.replaces and n.side = 'left' and x.status = 'matched'
        union
        select x.bucket, x.match_id
        from news n
        join :"schema".sql_match x on x.generation_id = 1 and x.shard = 0
            and x.right_id = n.id and x.right_revision < n.revision
        where n.replaces and n.side = 'right' and x.status = 'matched'
    ) old
    where m.generation_id = 1 and m.shard = 0
        and m.bucket = old.bucket and m.match_id = old.match_id
    returning m.bucket, m.match_id
)
insert into :"schema".sql_match_transition
    (generation_id, shard, epoch, ordinal, bucket, match_id, from_status, to_status, reason)
select 1, 0, $1::bigint, row_number() over (), bucket, match_id, 'matched', 'superseded', 'revised'
from withdrawn
