// Package migrations holds Tallystick's schema as goose migrations and applies them.
//
// The files name the schema as :"schema", as psql would; it is replaced by the quoted identifier
// before goose reads them, so the same files serve any schema name.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed *.sql
var files embed.FS

//go:embed roles/roles.sql
var roles string

// ErrBehind reports a schema older than the program needs.
var ErrBehind = errors.New("schema is older than this program")

// Status is one migration and whether it has been applied.
type Status struct {
	Version int64
	Name    string
	Applied bool
}

// Up applies every pending migration in schema, creating the schema first. Concurrent calls wait
// for each other on a transaction-level advisory lock, which also works behind a pooler.
func Up(ctx context.Context, conn *pgx.ConnConfig, schema string, logger *slog.Logger) error {
	return with(conn, schema, logger, func(db *sql.DB, p *goose.Provider) error {
		if err := createSchema(ctx, db, schema); err != nil {
			return err
		}
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate schema %s up: %w", schema, err)
		}
		return nil
	})
}

// Down undoes the newest migration.
func Down(ctx context.Context, conn *pgx.ConnConfig, schema string, logger *slog.Logger) error {
	return with(conn, schema, logger, func(_ *sql.DB, p *goose.Provider) error {
		if _, err := p.Down(ctx); err != nil {
			return fmt.Errorf("migrate schema %s down: %w", schema, err)
		}
		return nil
	})
}

// CreateRoles creates the roles tally_owner, tally_worker and tally_reader where they are missing,
// grants them what they need in a migrated schema and makes tally_owner its owner. It may be run
// again; the caller must be allowed to create roles.
func CreateRoles(ctx context.Context, conn *pgx.ConnConfig, schema string) (err error) {
	c, err := pgx.ConnectConfig(ctx, conn)
	if err != nil {
		return fmt.Errorf("connect to create the roles: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	if _, err := c.Exec(ctx, render(roles, schema)); err != nil {
		return fmt.Errorf("create the roles of schema %s: %w", schema, err)
	}
	return nil
}

// List gives every migration in order, applied or pending. It changes nothing where the schema
// has never been migrated.
func List(ctx context.Context, conn *pgx.ConnConfig, schema string) ([]Status, error) {
	var list []Status
	err := with(conn, schema, slog.New(slog.DiscardHandler), func(db *sql.DB, p *goose.Provider) error {
		var migrated bool
		row := db.QueryRowContext(ctx, "select to_regclass($1) is not null", versionTable(schema))
		if err := row.Scan(&migrated); err != nil {
			return fmt.Errorf("look for the migrations of schema %s: %w", schema, err)
		}
		for _, s := range p.ListSources() {
			list = append(list, Status{Version: s.Version, Name: s.Path})
		}
		if !migrated {
			return nil
		}
		applied, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("read the migrations of schema %s: %w", schema, err)
		}
		for i, a := range applied {
			list[i].Applied = a.State == goose.StateApplied
		}
		return nil
	})
	return list, err
}

// Check returns an error wrapping ErrBehind unless every migration of this program is applied.
func Check(ctx context.Context, conn *pgx.ConnConfig, schema string) error {
	list, err := List(ctx, conn, schema)
	if err != nil {
		return err
	}
	for _, m := range list {
		if !m.Applied {
			return fmt.Errorf("schema %s lacks migration %s: %w; run tally migrate", schema, m.Name,
				ErrBehind)
		}
	}
	return nil
}

func with(
	conn *pgx.ConnConfig, schema string, logger *slog.Logger,
	do func(*sql.DB, *goose.Provider) error,
) (err error) {
	conn = conn.Copy()
	conn.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // no named statements: poolers
	db := stdlib.OpenDB(*conn)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := provider(db, schema, logger)
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	return do(db, p)
}

func provider(db *sql.DB, schema string, logger *slog.Logger) (*goose.Provider, error) {
	scripts, err := renderFS(schema)
	if err != nil {
		return nil, err
	}
	store, err := database.NewStore(goose.DialectPostgres, versionTable(schema))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider("", db, scripts,
		goose.WithStore(plainStore{store}),
		goose.WithLocker(&xactLocker{schema: schema}),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(logger.With("service", "goose")),
	)
}

// plainStore hides goose's own look-up of the version table, which takes an unquoted name.
type plainStore struct{ database.Store }

func versionTable(schema string) string {
	return pgx.Identifier{schema, "goose_db_version"}.Sanitize()
}

func createSchema(ctx context.Context, db *sql.DB, schema string) error {
	var exists bool
	row := db.QueryRowContext(ctx, "select exists (select from pg_namespace where nspname = $1)", schema)
	if err := row.Scan(&exists); err != nil {
		return fmt.Errorf("look for schema %s: %w", schema, err)
	}
	if exists {
		return nil
	}
	create := "create schema if not exists " + pgx.Identifier{schema}.Sanitize()
	if _, err := db.ExecContext(ctx, create); err != nil {
		return fmt.Errorf("create schema %s: %w", schema, err)
	}
	return nil
}

// render puts the schema's quoted name in place of :"schema".
func render(text, schema string) string {
	return strings.ReplaceAll(text, `:"schema"`, pgx.Identifier{schema}.Sanitize())
}

// renderFS gives the embedded files with the schema's quoted name in place of :"schema".
func renderFS(schema string) (fs.FS, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	rendered := fstest.MapFS{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rendered[name] = &fstest.MapFile{Data: []byte(render(string(text), schema))}
	}
	return rendered, nil
}
