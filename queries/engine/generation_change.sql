-- Gives a generation another status, if it has one of those named. Returns a row when it had.
update :"schema".generation set status = $2::text, status_at = clock_timestamp()
where generation_id = $1::integer and status = any($3::text[])
returning generation_id
