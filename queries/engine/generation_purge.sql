-- Deletes up to $2 rows of each table of a generation that does not serve. Returns how many.
with buffer_gone as (
    delete from :"schema".buffer where ctid = any (array(
        select ctid from :"schema".buffer where generation_id = $1::integer limit $2::integer))
    returning 1
), match_gone as (
    delete from :"schema".match where ctid = any (array(
        select ctid from :"schema".match where generation_id = $1::integer limit $2::integer))
    returning 1
), match_transition_gone as (
    delete from :"schema".match_transition where ctid = any (array(
        select ctid from :"schema".match_transition where generation_id = $1::integer limit $2::integer))
    returning 1
), correction_gone as (
    delete from :"schema".correction where ctid = any (array(
        select ctid from :"schema".correction where generation_id = $1::integer limit $2::integer))
    returning 1
), quarantine_gone as (
    delete from :"schema".quarantine where ctid = any (array(
        select ctid from :"schema".quarantine where generation_id = $1::integer limit $2::integer))
    returning 1
), epoch_gone as (
    delete from :"schema".epoch where ctid = any (array(
        select ctid from :"schema".epoch where generation_id = $1::integer limit $2::integer))
    returning 1
), source_offset_gone as (
    delete from :"schema".source_offset where ctid = any (array(
        select ctid from :"schema".source_offset where generation_id = $1::integer limit $2::integer))
    returning 1
), attempt_gone as (
    delete from :"schema".attempt where ctid = any (array(
        select ctid from :"schema".attempt where generation_id = $1::integer limit $2::integer))
    returning 1
), shard_gone as (
    delete from :"schema".shard where generation_id = $1::integer
    returning 1
)
select (select count(*) from buffer_gone)
    + (select count(*) from match_gone)
    + (select count(*) from match_transition_gone)
    + (select count(*) from correction_gone)
    + (select count(*) from quarantine_gone)
    + (select count(*) from epoch_gone)
    + (select count(*) from source_offset_gone)
    + (select count(*) from attempt_gone)
    + (select count(*) from shard_gone)
