package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/store"
)

// The pool of one command: a shard uses two connections, up to so many shards, and two are for
// looking around; more shards share them.
const (
	maxConns       = 4
	maxConnsShards = 8
)

// open opens the store of the configuration and refuses a schema that is behind this program.
// The caller closes it.
func (a *app) open(ctx context.Context) (*store.Store, *config.Config, error) {
	c, err := a.config()
	if err != nil {
		return nil, nil, err
	}
	s, err := a.openConfig(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return s, c, nil
}

// openConfig is open for a configuration that has been read.
func (a *app) openConfig(ctx context.Context, c *config.Config) (*store.Store, error) {
	conn, err := connConfig(c.Database)
	if err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, conn, c.Schema); err != nil {
		return nil, err
	}
	opened := store.Config{
		ConnString: c.Database.Reveal(),
		Schema:     c.Schema,
		Logger:     a.logger,
		MaxConns:   int32(maxConns + 2*(min(c.Shards, maxConnsShards)-1)),
		LeaseFor:   c.LeaseFor.Std(),

		RetainEpochs: c.Retain.Epochs,
	}
	a.watch(&opened)
	if a.adaptStore != nil {
		a.adaptStore(&opened)
	}
	return store.Open(ctx, opened)
}

// connect opens one connection; the caller closes it.
func connect(ctx context.Context, database config.Secret) (*pgx.Conn, error) {
	parsed, err := connConfig(database)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres: %w", err)
	}
	return conn, nil
}

// connConfig reads a connection string; what it leaves out comes from the PG* variables.
func connConfig(database config.Secret) (*pgx.ConnConfig, error) {
	conn, err := pgx.ParseConfig(database.Reveal())
	if err != nil {
		// What pgx says of it is left out: it may quote a password.
		return nil, usageError(errors.New("database: not a Postgres connection string"))
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "tallystick"
	}
	// No named statements: a pooler would lose them between transactions.
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	return conn, nil
}

// where names a server and database for people.
func where(conn *pgx.ConnConfig) string {
	return fmt.Sprintf("%s:%d/%s as %s", conn.Host, conn.Port, conn.Database, conn.User)
}
