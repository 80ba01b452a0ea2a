-- Creates the tables of the hand-written epoch: columns, checks, keys and indexes of the real ones,
-- except that a buffer row is updated in place and so has no epoch in its key, that the indexes
-- on the buffer hold every row, since a join in SQL has no memory of its own to look in first, and
-- that its rows carry no hashes.
create table :"schema".sql_buffer (like :"schema".buffer
    including defaults including constraints);
alter table :"schema".sql_buffer alter row_hash drop not null;
alter table :"schema".sql_buffer add primary key (generation_id, shard, side, id);
create index on :"schema".sql_buffer (hashtextextended(key, 0));
create index on :"schema".sql_buffer ((generation_id::bigint << 32 | shard), horizon);
create table :"schema".sql_match (like :"schema".match
    including defaults including constraints including indexes);
alter table :"schema".sql_match alter row_hash drop not null;
create table :"schema".sql_match_transition (like :"schema".match_transition
    including defaults including constraints including indexes);
create table :"schema".sql_offset (
    side text collate "C" primary key,
    position bigint not null,
    watermark timestamptz not null
) with (fillfactor = 50);
insert into :"schema".sql_offset values ('left', 0, '-infinity'), ('right', 0, '-infinity')
