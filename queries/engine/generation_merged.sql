-- Marks an interval as one whose differences its base took over with an epoch.
update :"schema".generation
set status = 'merged', status_at = clock_timestamp(), promoted_epoch = $2::bigint
where generation_id = $1::integer
