-- Creates the tables of the COPY floor: the columns and primary keys of the real ones, no checks and
-- no other index.
create table :"schema".floor_buffer (
    like :"schema".buffer including defaults,
    primary key (generation_id, shard, side, id, added_epoch));
create table :"schema".floor_match (
    like :"schema".match including defaults,
    primary key (generation_id, shard, bucket, match_id));
create table :"schema".floor_match_transition (
    like :"schema".match_transition including defaults,
    primary key (generation_id, shard, epoch, ordinal));
create table :"schema".floor_epoch (
    like :"schema".epoch including defaults,
    primary key (generation_id, shard, epoch));
