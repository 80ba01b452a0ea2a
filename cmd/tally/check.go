package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/source/postgres"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// The oldest server that works, and the only encoding in which texts are what was read.
const (
	serverVersionMin = 140000
	encodingNeeded   = "UTF8"
)

// sampleRecords is how many records of each source tally check looks at.
const sampleRecords = 20

func newCheckCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, database, rights, schema and sources",
		Long: "check tests everything a run needs and changes nothing. Each line is ok, a warning\n" +
			"or failed, with the fix. It exits with 0 unless something failed: 2 where the\n" +
			"configuration has to change, 1 where a retry may help.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k := &check{app: a, lines: table.Table{Columns: []string{"check", "state", "what", "fix"}}}
			k.run(cmd.Context())
			if err := a.render(&k.lines); err != nil {
				return err
			}
			if k.code != exitDone {
				return &exitError{code: k.code}
			}
			return nil
		},
	}
	a.outputFlag(cmd)
	return cmd
}

// check gathers one line for each thing it looked at.
type check struct {
	app    *app
	config *config.Config
	lines  table.Table
	code   int
}

func (k *check) okf(what, format string, args ...any) {
	k.lines.Add(what, "ok", fmt.Sprintf(format, args...), nil)
}

func (k *check) warn(what, problem, fix string) { k.lines.Add(what, "warning", problem, fix) }

func (k *check) fail(code int, what, problem, fix string) {
	// What pgx says of a connection has several lines.
	k.lines.Add(what, "failed", strings.Join(strings.Fields(problem), " "), fix)
	k.code = max(k.code, code)
}

func (k *check) run(ctx context.Context) {
	if !k.configuration() {
		return
	}
	conn, err := connConfig(k.config.Database)
	if err != nil {
		k.fail(exitUsage, "database", err.Error(), "correct database or the PG* variables")
		return
	}
	pool, err := openPool(ctx, conn)
	if err != nil {
		k.fail(exitFailed, "database", err.Error(),
			"check that Postgres runs there and takes the user and password")
		return
	}
	defer pool.Close()
	k.server(ctx, conn, pool)
	k.schema(ctx, conn, pool)
	k.sources(ctx, pool)
}

func (k *check) configuration() bool {
	c, err := k.app.config()
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			k.fail(exitUsage, "configuration", line, "correct the file")
		}
		return false
	}
	k.config = c
	k.okf("configuration", "%s: reconciliation %s, rule %s", k.app.configFile, c.Name, c.Rule.Version)
	for _, key := range c.Inert() {
		k.warn("configuration", inertText(key), "remove it, or keep it for a later version")
	}
	return true
}

// inertText says that a key is accepted and has no effect yet.
func inertText(key string) string {
	return fmt.Sprintf("%s is set, but this version doesn't act on it yet", key)
}

func openPool(ctx context.Context, conn *pgx.ConnConfig) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("read the PG* variables: %w", err)
	}
	pc.ConnConfig, pc.MaxConns = conn, maxConns
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", where(conn), err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to %s: %w", where(conn), err)
	}
	return pool, nil
}

// serverFacts is the row of check_server.sql.
type serverFacts struct {
	VersionNumber     int32
	Version, Encoding string
	Standby           bool
	Role              string
	Attributes        []string
}

func (k *check) server(ctx context.Context, conn *pgx.ConnConfig, pool *pgxpool.Pool) {
	var facts serverFacts
	rows, err := pool.Query(ctx, queries.Command("check_server"))
	if err == nil {
		facts, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[serverFacts])
	}
	if err != nil {
		k.fail(exitFailed, "database", err.Error(), "try again")
		return
	}
	k.okf("database", "%s, PostgreSQL %s", where(conn), facts.Version)
	if facts.VersionNumber < serverVersionMin {
		k.fail(exitUsage, "database", "PostgreSQL "+facts.Version+" is too old", "use 14 or newer")
	}
	if facts.Encoding != encodingNeeded {
		k.fail(exitUsage, "database", "its encoding is "+facts.Encoding,
			"create the database with ENCODING 'UTF8'")
	}
	if facts.Standby {
		k.fail(exitFailed, "database", "it is a standby, which can't be written",
			"connect to the primary (target_session_attrs=read-write)")
	}
	k.pooler(ctx, pool)
	for _, attribute := range facts.Attributes {
		k.warn("rights", fmt.Sprintf("role %s has a right it doesn't need: %s", facts.Role, attribute),
			"run as a role of its own")
	}
}

func (k *check) pooler(ctx context.Context, pool *pgxpool.Pool) {
	switch pooling, err := store.FindPooling(ctx, pool); {
	case err != nil:
		k.fail(exitFailed, "pooler", err.Error(), "let the pooler pool transactions or sessions")
	case pooling != store.PoolsNothing:
		k.okf("pooler", "a pooler such as PgBouncer is in between and pools %ss; nothing is kept in "+
			"a session", pooling)
	}
}

func (k *check) schema(ctx context.Context, conn *pgx.ConnConfig, pool *pgxpool.Pool) {
	name := k.config.Schema
	if err := migrations.Check(ctx, conn, name); err != nil {
		if errors.Is(err, migrations.ErrBehind) {
			k.fail(exitUsage, "schema", strings.TrimSuffix(err.Error(), "; run tally migrate"),
				"tally migrate -c "+k.app.configFile)
		} else {
			k.fail(exitFailed, "schema", err.Error(), "let the role read schema "+name)
		}
		return
	}
	k.okf("schema", "%s has every migration", name)
	var usage, mayCreate bool
	var truncatable int64
	var missing string
	row := pool.QueryRow(ctx, queries.Command("check_rights"), name)
	if err := row.Scan(&usage, &mayCreate, &truncatable, &missing); err != nil {
		k.fail(exitFailed, "rights", err.Error(), "try again")
		return
	}
	quoted := pgx.Identifier{name}.Sanitize()
	switch {
	case !usage:
		k.fail(exitUsage, "rights", "the role may not use schema "+name, "GRANT USAGE ON SCHEMA "+quoted)
	case missing != "":
		k.fail(exitUsage, "rights", "the role lacks "+missing,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+quoted)
	default:
		k.okf("rights", "the role may read and write every table of schema %s", name)
	}
	if mayCreate || truncatable > 0 {
		k.warn("rights", "the role may create or truncate tables in schema "+name+
			", which a run doesn't need", "migrate as the owner, run as a role with fewer rights")
	}
}

func (k *check) sources(ctx context.Context, pool *pgxpool.Pool) {
	sources, err := newSources(k.config, pool)
	if err != nil {
		k.fail(exitUsage, "sources", err.Error(), "correct the source")
		return
	}
	for _, source := range sources {
		k.source(ctx, source)
	}
	if err := closeSources(sources); err != nil {
		k.warn("sources", err.Error(), "none needed")
	}
}

func (k *check) source(ctx context.Context, source reconcile.Source) {
	p := source.Partition()
	what := fmt.Sprintf("%s source", p.Side)
	if tabular, ok := source.(*postgres.Source); ok {
		failed := false
		for _, finding := range tabular.Check(ctx) {
			if finding.Warning {
				k.warn(what, finding.Problem, finding.Fix)
			} else {
				k.fail(exitUsage, what, finding.Problem, finding.Fix)
				failed = true
			}
		}
		if failed {
			return
		}
	}
	if _, err := source.Open(ctx, "", ""); err != nil {
		k.fail(exitUsage, what, err.Error(), "correct the source")
		return
	}
	records, _, err := source.Read(ctx, sampleRecords)
	if err != nil {
		k.fail(exitUsage, what, err.Error(), "correct the source")
		return
	}
	k.sample(what, p.Source, records)
}

// sample judges the mapping by the first records: a wrong one quarantines them all.
func (k *check) sample(what, name string, records []stream.Record) {
	bad := 0
	var reason stream.Reason
	for _, r := range records {
		if r.Reason != "" {
			bad++
			reason = r.Reason
		}
	}
	switch {
	case len(records) == 0:
		k.warn(what, name+" has no records yet", "none needed if they are still to come")
	case bad == len(records):
		k.warn(what, fmt.Sprintf("all of the first %d records of %s would be quarantined, the last "+
			"as %s", bad, name, reason), "compare id, key, time and revision with the records")
	case bad > 0:
		k.warn(what, fmt.Sprintf("%d of the first %d records of %s would be quarantined, one as %s",
			bad, len(records), name, reason), "none needed; tally quarantine shows them")
	default:
		k.okf(what, "%s: the first %d records are events", name, len(records))
	}
}
