-- Says that no epoch before $3, whose watermark is $4, will be gone back to. The shard's row must be
-- locked by an earlier statement of the transaction, so that this one sees a restore that it waited
-- for. Returns whether it may be purged behind that epoch: not where a restore has discarded it,
-- nor where another purge was further.
with marked as (
    update :"schema".shard s set purged_epoch = $3::bigint
    where s.generation_id = $1::integer and s.shard = $2::integer
        and s.purged_epoch <= $3::bigint and s.watermark >= $4::timestamptz
        and exists (
            select from :"schema".epoch e
            where e.generation_id = $1::integer and e.shard = $2::integer
                and e.epoch = $3::bigint and e.status = 'committed')
    returning 1
)
select exists (select from marked)
