// Package bench measures what reconciling costs: throughput against the same rows written by COPY
// alone and against an epoch written in SQL by hand, latency at a steady rate, WAL, statements and
// memory, all in one run on one server.
//
// Absolute times drift with the machine and its other work, so the contenders take turns, in an
// order that changes from round to round, each on fresh tables; what counts are the ratios within a
// round.
package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/workload"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// Reconcile runs the loop of tally run over a configuration: until the present end of the sources,
// or else until ctx ends. onEpoch is called after each commit.
type Reconcile func(
	ctx context.Context, c *config.Config, s *store.Store, untilEnd bool,
	onEpoch func(*stream.Delta),
) error

// The parts of a run.
const (
	PartFloor  = "floor"
	PartSQL    = "sql"
	PartPaced  = "paced"
	PartState  = "state"
	PartStored = "stored"
	// PartRestart is how long a restart takes.
	PartRestart = "restart"
)

// Parts lists them all. The run end to end is no part of its own: the others need it.
func Parts() []string {
	return []string{PartFloor, PartSQL, PartPaced, PartState, PartStored, PartRestart}
}

// Config says what to measure.
type Config struct {
	// Database is the connection string of a database in which schemas may be created.
	Database string
	// Dir holds the generated files and spooled rows; it is the caller's to remove.
	Dir string
	// Events is how many events both sides have, revisions and repeats not counted.
	Events int
	Seed   uint64
	// MaxEvents is the size of an epoch, MaxDelay how long a record waits for its epoch in the
	// paced part, CacheRows the rows in memory.
	MaxEvents int
	MaxDelay  time.Duration
	CacheRows int
	// Rounds is how often the contenders take turns.
	Rounds int
	// Rate is the events a second of the paced part, PacedFor how long it lasts.
	Rate     int
	PacedFor time.Duration
	// Stored is how many results are there before the runs of the part stored.
	Stored int64
	// Only chooses among Parts; all of them when it is empty.
	Only      []string
	Reconcile Reconcile
	Logger    *slog.Logger
	// Profile, when set, gets a CPU profile of the runs end to end.
	Profile io.Writer
}

// Validate reports the first impossible value by the name of its flag.
func (c *Config) Validate() error {
	for _, n := range []struct {
		name  string
		value int
		least int
	}{
		{"max-events", c.MaxEvents, 1},
		{"rounds", c.Rounds, 1},
		{"rate", c.Rate, 1},
		{"cache-rows", c.CacheRows, 0},
		{"stored", int(c.Stored), 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("--%s %d: want at least %d", n.name, n.value, n.least)
		}
	}
	if c.PacedFor < time.Second || c.MaxDelay < 0 {
		return errors.New("--paced-for: want at least 1s; --max-delay: not negative")
	}
	for _, part := range c.Only {
		if !slices.Contains(Parts(), part) {
			return fmt.Errorf("--only %s: want some of %s", part, strings.Join(Parts(), ", "))
		}
	}
	w := c.workload()
	return w.Validate()
}

func (c *Config) workload() workload.Config {
	w := workload.Default()
	w.Events, w.Seed = c.Events, c.Seed
	return w
}

func (c *Config) wants(part string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, part)
}

// quiet is for parts whose log lines would only disturb.
var quiet = slog.New(slog.DiscardHandler)

// bench is one run of the benchmark.
type bench struct {
	Config
	db *database
	// tag makes the names of this run's schemas its own, made numbers them.
	tag  string
	made int
	// records is how many the files hold together.
	records int64
	report  Report
}

// Run measures and reports. It returns an error when something fails or when the contenders come to
// different results; a goal that is missed is none.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, c.Database)
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres: %w", err)
	}
	b := &bench{Config: c, db: &database{Conn: conn}, tag: strings.ToLower(rand.Text()[:6])}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	if b.report.Settings, err = b.db.settings(ctx); err != nil {
		return nil, err
	}
	if err := b.generate(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{
		// The paced part comes last: it writes the files anew.
		b.rounds, b.smallCache, b.withStored, b.restart, b.paced,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &b.report, nil
}

// close drops what is left of the schemas, also after ctx was cancelled.
func (b *bench) close(ctx context.Context) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var errs []error
	if b.db.IsClosed() {
		conn, err := pgx.Connect(ctx, b.Database)
		if err != nil {
			return fmt.Errorf("connect to Postgres to drop schemas: %w", err)
		}
		b.db.Conn = conn
	}
	for _, schema := range slices.Clone(b.db.schemas) {
		errs = append(errs, b.db.dropSchema(ctx, schema))
	}
	return errors.Join(append(errs, b.db.Close(ctx))...)
}

// generate writes both sides' files.
func (b *bench) generate() error {
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		file, err := os.Create(b.path(side))
		if err != nil {
			return fmt.Errorf("generate the workload: %w", err)
		}
		n, err := workload.WriteNDJSON(file, workload.New(b.workload(), side))
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("generate the workload: %w", err)
		}
		b.records += n
	}
	b.Logger.Info("generated the workload", "records", b.records)
	return nil
}
