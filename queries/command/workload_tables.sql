-- Makes the tables that tally generate and tally demo fill: payments and risk signals, in the order
-- they arrive. The transaction column lets a reader stay below every transaction still open.
create schema if not exists :"schema";
create table :"schema".payments (
    seq bigint generated always as identity,
    txid xid8 not null default pg_current_xact_id(),
    payment_id text,
    revision bigint not null,
    account text,
    currency text not null,
    occurred_at timestamptz,
    amount numeric(12, 2) not null,
    country text not null,
    merchant text not null,
    method text not null,
    reference text not null,
    is_deleted boolean not null,
    primary key (txid, seq)
);
create table :"schema".risk_signals (
    seq bigint generated always as identity,
    txid xid8 not null default pg_current_xact_id(),
    signal_id text,
    revision bigint not null,
    account text,
    currency text not null,
    occurred_at timestamptz,
    amount numeric(12, 2) not null,
    country text not null,
    level text not null,
    score bigint not null,
    reference text not null,
    is_deleted boolean not null,
    primary key (txid, seq)
);
