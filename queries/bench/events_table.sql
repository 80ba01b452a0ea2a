-- Creates the table through which parsed events get the form in which COPY takes them.
create unlogged table :"schema".bench_events (
    number bigint not null,
    epoch bigint not null,
    side text not null,
    id text not null,
    revision bigint not null,
    key text not null,
    event_time timestamptz not null,
    attributes json not null,
    position bigint not null
)
