-- Creates the tables of the hand-written epoch: columns, keys, checks and indexes of the real ones,
-- except that a buffer row is updated in place and so has no epoch in its key.
create table :"schema".sql_buffer (
    generation_id integer not null,
    shard integer not null,
    side text not null check (side in ('left', 'right')),
    id text not null check (id <> ''),
    revision bigint not null,
    key text not null,
    event_time timestamptz,
    deleted boolean not null,
    attributes json not null,
    horizon timestamptz not null,
    source text not null,
    partition integer not null,
    position text not null,
    added_epoch bigint not null,
    primary key (generation_id, shard, side, id)
);
create index on :"schema".sql_buffer (key, horizon);
create index on :"schema".sql_buffer ((generation_id::bigint << 32 | shard), horizon);
create table :"schema".sql_match (
    generation_id integer not null,
    shard integer not null,
    match_id bytea not null check (octet_length(match_id) = 32),
    kind text not null check (kind in ('pair', 'left_only', 'right_only')),
    status text not null
        check (status in ('matched', 'provisional', 'final', 'retracted', 'superseded')),
    left_id text,
    left_revision bigint,
    right_id text,
    right_revision bigint,
    key text not null,
    left_time timestamptz,
    right_time timestamptz,
    horizon timestamptz not null,
    verdict text check (verdict in ('agree', 'differ')),
    opened_epoch bigint not null,
    changed_epoch bigint not null,
    primary key (generation_id, shard, match_id),
    check (
        (kind <> 'right_only') = (left_id is not null)
        and (kind <> 'left_only') = (right_id is not null))
);
create index on :"schema".sql_match (left_id) where left_id is not null;
create index on :"schema".sql_match (right_id) where right_id is not null;
create table :"schema".sql_match_transition (
    generation_id integer not null,
    shard integer not null,
    epoch bigint not null,
    ordinal bigint not null,
    match_id bytea not null,
    from_status text,
    to_status text not null,
    reason text not null,
    primary key (generation_id, shard, epoch, ordinal)
);
create table :"schema".sql_offset (
    side text primary key,
    position bigint not null,
    watermark timestamptz not null
) with (fillfactor = 50);
insert into :"schema".sql_offset values ('left', 0, '-infinity'), ('right', 0, '-infinity')
