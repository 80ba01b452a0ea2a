-- Says which manifests from epoch $3 on count: those of the chain, $4. The others are discarded.
update :"schema".epoch set status = case
    when epoch = any($4::bigint[]) then 'committed' else 'discarded' end
where generation_id = $1::integer and shard = $2::integer and epoch >= $3::bigint
    and status is distinct from case
        when epoch = any($4::bigint[]) then 'committed' else 'discarded' end
