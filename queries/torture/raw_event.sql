-- Every record of a history that is an event, duplicates and older revisions included.
create temporary table raw_event (
    side       text    not null,
    source     text    not null,
    partition  integer not null,
    ordinal    bigint  not null,
    id         text    not null,
    revision   bigint  not null,
    key        text    not null,
    time_us    bigint,
    has_time   boolean not null,
    deleted    boolean not null,
    attributes text    not null
) on commit drop
