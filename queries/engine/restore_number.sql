-- The highest number of an epoch that anything of the shard names.
select greatest(
    (select max(epoch) from :"schema".shard where generation_id = $1::integer and shard = $2::integer),
    (select max(epoch) from :"schema".epoch where generation_id = $1::integer and shard = $2::integer),
    (select max(epoch) from :"schema".source_offset
     where generation_id = $1::integer and shard = $2::integer),
    (select max(greatest(added_epoch, retired_epoch)) from :"schema".buffer
     where generation_id = $1::integer and shard = $2::integer),
    (select max(greatest(opened_epoch, changed_epoch)) from :"schema".match
     where generation_id = $1::integer and shard = $2::integer),
    (select max(epoch) from :"schema".match_transition
     where generation_id = $1::integer and shard = $2::integer),
    (select max(epoch) from :"schema".correction
     where generation_id = $1::integer and shard = $2::integer),
    (select max(epoch) from :"schema".quarantine
     where generation_id = $1::integer and shard = $2::integer),
    (select max(greatest(from_epoch, restored_epoch)) from :"schema".attempt
     where generation_id = $1::integer and shard = $2::integer))
