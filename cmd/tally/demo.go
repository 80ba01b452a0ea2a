package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/private"
	"github.com/tallystick/tallystick/cmd/tally/internal/workload"
	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// The schemas of the demo: the results, and the tables they come from.
const (
	demoSchema = "tally_demo"
	shopSchema = "tally_demo_shop"
)

// demo is one call of tally demo.
type demo struct {
	app      *app
	workload workload.Config
	database string
	dir      string
	keep     bool

	// url connects to the database in use; given is true where it isn't the demo's own.
	url    string
	given  bool
	config *config.Config
}

func newDemoCommand(a *app) *cobra.Command {
	d := &demo{app: a, workload: workload.Default()}
	d.workload.Events = 40_000
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work, with nothing prepared",
		Long: "demo starts a private Postgres, lets payments and risk signals arrive in it (late,\n" +
			"revised, deleted, repeated and malformed ones among them), reconciles them live,\n" +
			"shows what came of it, and removes everything again.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&d.database, "database", "",
		"use this database, in two schemas of its own, instead of a private Postgres")
	flags.StringVar(&d.dir, "dir", "",
		"directory to make for the private Postgres (default: a temporary one)")
	flags.BoolVar(&d.keep, "keep", false, "leave the database reachable until interrupted")
	addWorkloadFlags(cmd, &d.workload)
	a.outputFlag(cmd)
	return cmd
}

func (d *demo) run(ctx context.Context) (err error) {
	if err := d.workload.Validate(); err != nil {
		return usageError(err)
	}
	d.workload.Start = time.Now().Add(-d.workload.Span()).Truncate(time.Second)
	if d.database != "" {
		d.url, d.given = d.database, true
		return d.inSchemas(ctx)
	}
	if d.dir != "" {
		if _, err := os.Stat(d.dir); err == nil {
			return usageError(fmt.Errorf("--dir %s is there already; name one that isn't", d.dir))
		}
	}
	server, err := private.Start(ctx, d.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(ctx)) }()
	d.sayf("started %s", server.What)
	d.url = server.URL
	return d.inSchemas(ctx)
}

// inSchemas makes both schemas and removes them again.
func (d *demo) inSchemas(ctx context.Context) (err error) {
	conn, err := connect(ctx, config.Secret(d.url))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := d.refuseTaken(ctx, conn); err != nil {
		return err
	}
	if d.given {
		defer func() { err = errors.Join(err, d.drop(ctx)) }()
	}
	if err := workload.CreateTables(ctx, conn, shopSchema); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tally-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the configuration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := d.configure(filepath.Join(dir, config.FileDefault)); err != nil {
		return err
	}
	parsed, err := connConfig(d.config.Database)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, parsed, demoSchema, d.app.logger); err != nil {
		return err
	}
	d.sayf("made schema %s for the results and %s for the events", demoSchema, shopSchema)
	return d.reconcile(ctx, conn)
}

// refuseTaken keeps the demo from touching schemas that are there already.
func (d *demo) refuseTaken(ctx context.Context, conn *pgx.Conn) error {
	schemas := []string{demoSchema, shopSchema}
	rows, err := conn.Query(ctx, queries.Command("demo_taken"), schemas)
	if err != nil {
		return fmt.Errorf("look for the demo's schemas: %w", err)
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for the demo's schemas: %w", err)
	}
	if len(taken) > 0 {
		return usageError(fmt.Errorf("schema %s is there already; drop it, or choose another database",
			strings.Join(taken, " and ")))
	}
	return nil
}

// drop removes the schemas from a database that isn't the demo's own, also after an interrupt.
func (d *demo) drop(ctx context.Context) error {
	const timeout = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	conn, err := connect(ctx, config.Secret(d.url))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, schema := range []string{demoSchema, shopSchema} {
		sql := queries.Render(queries.Command("demo_drop"), schema)
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("drop schema %s: %w", schema, err)
		}
	}
	return nil
}

// configure writes the configuration, for the user to try other commands with, and reads it.
func (d *demo) configure(path string) error {
	t := config.Template{
		Name: "payments-risk", Schema: demoSchema,
		Left:  tableSource(shopSchema, stream.Left),
		Right: tableSource(shopSchema, stream.Right),
	}
	if !d.given {
		quoted, err := json.Marshal(d.url)
		if err != nil {
			return fmt.Errorf("write the configuration: %w", err)
		}
		t.Database = string(quoted)
	}
	text := t.Text()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	var err error
	d.config, err = config.Parse(path, []byte(text), func(name string) (string, bool) {
		if name == "DATABASE_URL" {
			return d.url, true
		}
		return os.LookupEnv(name)
	})
	return err
}

// reconcile lets the events arrive and reconciles them meanwhile, then shows the results.
func (d *demo) reconcile(ctx context.Context, conn *pgx.Conn) error {
	s, err := d.app.openConfig(ctx, d.config)
	if err != nil {
		return err
	}
	defer s.Close()
	d.sayf("payments and risk signals arrive and are reconciled as they come")
	p := newProgress(d.app)
	stop := p.show(ctx)
	rows, err := d.live(ctx, conn, s, p)
	if err == nil {
		err = reconcileWith(ctx, d.app, d.config, s, runFlags{untilEnd: true, seal: true}, p.add)
	}
	stop()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	d.sayf("%d rows arrived; %s", rows, p.summary())
	if err := d.report(ctx, conn, s); err != nil {
		return err
	}
	if d.keep {
		d.sayf("interrupt to end the demo and remove everything")
		<-ctx.Done()
	}
	return nil
}

// live reconciles while the events arrive, and stops when the last has. What it has not read by
// then is left to the run until the end.
func (d *demo) live(
	ctx context.Context, conn *pgx.Conn, s *store.Store, p *progress,
) (rows int64, err error) {
	group, arriving := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(arriving)
	defer stop()
	group.Go(func() error {
		return reconcileWith(running, d.app, d.config, s, runFlags{}, p.add)
	})
	group.Go(func() (err error) {
		defer stop()
		rows, err = feed(arriving, conn, d.workload)
		return err
	})
	err = group.Wait()
	return rows, err
}

// sayf tells the user what the demo does, beside the results.
func (d *demo) sayf(format string, args ...any) {
	fmt.Fprintf(d.app.stderr, "demo: "+format+"\n", args...)
}
