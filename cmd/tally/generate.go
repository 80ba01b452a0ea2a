package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/workload"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// generation is one call of tally generate.
type generation struct {
	app      *app
	workload workload.Config
	start    string
	dir      string
	format   string
	schema   string
	database string
	force    bool
}

func newGenerateCommand(a *app) *cobra.Command {
	g := &generation{app: a, workload: workload.Default()}
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate payments and risk signals to try things on",
		Long: "generate makes two event streams with the disorder of real ones, the same for the\n" +
			"same seed: as files in --dir, or as tables in the schema --into-postgres. A\n" +
			"tally.yaml that reconciles them is written to --dir.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.dir, "dir", ".", "directory for the files")
	flags.StringVar(&g.format, "format", "ndjson", "ndjson or csv")
	flags.StringVar(&g.schema, "into-postgres", "", "make tables in this schema instead of files")
	flags.StringVar(&g.database, "database", "",
		"database for the tables (default: DATABASE_URL, then the PG* variables)")
	flags.BoolVar(&g.force, "force", false, "overwrite files that are there")
	flags.StringVar(&g.start, "start", g.workload.Start.Format(time.RFC3339),
		"time of the first payment")
	addWorkloadFlags(cmd, &g.workload)
	return cmd
}

// addWorkloadFlags lets the user shape the workload. Its disorder is that of a day in production,
// more kinds of it than the measurements use.
func addWorkloadFlags(cmd *cobra.Command, w *workload.Config) {
	flags := cmd.Flags()
	flags.IntVar(&w.Events, "events", w.Events,
		"events of both sides together, before revisions and repeats")
	flags.Uint64Var(&w.Seed, "seed", w.Seed, "the same seed gives the same events")
	flags.DurationVar(&w.Step, "step", w.Step,
		"event time between two payments (0: 10ms, or more for a small workload)")
	flags.Float64Var(&w.Partners, "partners", w.Partners, "signals a payment has on average")
	for _, share := range []struct {
		value      *float64
		preset     float64
		name, what string
	}{
		{&w.Revised, 0.05, "revised", "events revised later"},
		{&w.Late, 0.02, "late", "events that come late, but in time to be joined"},
		{&w.Duplicated, 0.01, "duplicated", "events delivered twice"},
		{&w.Deleted, 0.005, "deleted", "events deleted later"},
		{&w.PastHorizon, 0.001, "past-horizon", "events that come too late to be joined"},
		{&w.Malformed, 0.001, "malformed", "records that are no events, on top"},
	} {
		flags.Float64Var(share.value, share.name, share.preset, "share of "+share.what)
	}
}

func (g *generation) run(ctx context.Context) error {
	start, err := time.Parse(time.RFC3339, g.start)
	if err != nil {
		return usageError(fmt.Errorf("--start %q: want RFC 3339, such as 2026-01-01T00:00:00Z",
			g.start))
	}
	g.workload.Start = start
	if err := g.workload.Validate(); err != nil {
		return usageError(err)
	}
	if g.format != "ndjson" && g.format != "csv" {
		return usageError(fmt.Errorf("--format %q: want ndjson or csv", g.format))
	}
	template := config.InitTemplate()
	if g.schema == "" {
		err = g.files(&template)
	} else {
		err = g.tables(ctx, &template)
	}
	if err != nil {
		return err
	}
	return g.configuration(template)
}

// files writes both sides beside the configuration.
func (g *generation) files(template *config.Template) error {
	if err := os.MkdirAll(g.dir, 0o750); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	for side, source := range sourcesOf(template) {
		name := workload.TableName(side) + "." + g.format
		path := filepath.Join(g.dir, name)
		lines, err := g.file(path, side)
		if err != nil {
			return err
		}
		g.app.printf("wrote %d records to %s\n", lines, path)
		*source = fmt.Sprintf("{type: file, path: %s}", name)
	}
	return nil
}

func (g *generation) file(path string, side stream.Side) (lines int64, err error) {
	file, err := createNew(path, g.force)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	write := map[string]func(io.Writer, *workload.Stream) (int64, error){
		"ndjson": workload.WriteNDJSON, "csv": workload.WriteCSV,
	}[g.format]
	if lines, err = write(file, workload.New(g.workload, side)); err != nil {
		return lines, fmt.Errorf("write %s: %w", path, err)
	}
	return lines, nil
}

// tables fills one table a side, both in one transaction.
func (g *generation) tables(ctx context.Context, template *config.Template) error {
	database := g.database
	if database == "" {
		database = os.Getenv("DATABASE_URL")
	}
	conn, err := connect(ctx, config.Secret(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return g.fill(ctx, tx, template) })
	if err != nil {
		return fmt.Errorf("generate into schema %s: %w", g.schema, err)
	}
	return nil
}

func (g *generation) fill(ctx context.Context, tx pgx.Tx, template *config.Template) error {
	if err := workload.CreateTables(ctx, tx.Conn(), g.schema); err != nil {
		return err
	}
	for side, source := range sourcesOf(template) {
		events := workload.New(g.workload, side)
		rows, _, err := workload.CopyNext(ctx, tx, g.schema, events, stream.Infinity)
		if err != nil {
			return err
		}
		g.app.printf("wrote %d rows to %s.%s\n", rows, g.schema, workload.TableName(side))
		*source = tableSource(g.schema, side)
	}
	return nil
}

// configuration writes the tally.yaml beside.
func (g *generation) configuration(template config.Template) error {
	path := filepath.Join(g.dir, config.FileDefault)
	if err := os.MkdirAll(g.dir, 0o750); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	if err := writeNew(path, template.Text(), g.force); err != nil {
		return err
	}
	g.app.printf("wrote %s\n", path)
	if g.database != "" {
		g.app.printf("next: set DATABASE_URL to that database, then ")
	} else {
		g.app.printf("next: ")
	}
	g.app.printf("tally migrate -c %s && tally run -c %s --until-end --seal\n", path, path)
	return nil
}

// sourcesOf gives the place of each side's source in a template, left first.
func sourcesOf(t *config.Template) func(func(stream.Side, *string) bool) {
	return func(yield func(stream.Side, *string) bool) {
		_ = yield(stream.Left, &t.Left) && yield(stream.Right, &t.Right)
	}
}

// tableSource is the source of a generated table as a YAML flow mapping.
func tableSource(schema string, side stream.Side) string {
	if strings.ContainsAny(schema, `."`) {
		schema = pgx.Identifier{schema}.Sanitize()
	}
	name, err := json.Marshal(schema + "." + workload.TableName(side))
	if err != nil {
		panic(fmt.Sprintf("table name as YAML: %v", err))
	}
	return fmt.Sprintf("{type: postgres, table: %s, cursor: seq, transaction: txid}", name)
}
