-- Opens again what a generation resolved that no longer serves.
update :"schema".correction set status = 'open', resolved_by = null
where generation_id = $1::integer and resolved_by = $2::integer and status = 'resolved'
