package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/bench"
	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/private"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// benchmark is one call of tally bench.
type benchmark struct {
	app     *app
	config  bench.Config
	profile string
}

func newBenchCommand(a *app) *cobra.Command {
	b := &benchmark{app: a}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput, latency and write cost",
		Long: "bench generates a workload and measures, on one server and in alternation: the run\n" +
			"end to end, the COPY floor (the same rows by COPY alone, into tables with primary keys\n" +
			"only) and the same epochs written in SQL by hand; then the latency at a steady rate.\n" +
			"Times depend on the machine; the ratios are what counts. Goals are shown beside what\n" +
			"was measured; one that is missed is no failure.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context()) },
	}
	flags, c := cmd.Flags(), &b.config
	flags.IntVar(&c.Events, "events", 1_000_000,
		"events of both sides together, before revisions and repeats")
	flags.IntVar(&c.MaxEvents, "max-events", 20_000, "events of an epoch")
	flags.IntVar(&c.CacheRows, "cache-rows", 2_000_000, "rows held in memory, as state.cache_rows")
	flags.IntVar(&c.Rounds, "rounds", 3, "how often the three take turns")
	flags.IntVar(&c.Rate, "rate", 5000, "events a second while latency is measured")
	flags.DurationVar(&c.PacedFor, "paced-for", 30*time.Second, "how long latency is measured")
	flags.DurationVar(&c.MaxDelay, "max-delay", 50*time.Millisecond,
		"how long an event waits for its epoch while latency is measured")
	flags.Int64Var(&c.Stored, "stored", 0,
		"also measure with this many results stored beforehand (0: don't)")
	flags.Uint64Var(&c.Seed, "seed", 1, "the same seed gives the same events")
	flags.StringSliceVar(&c.Only, "only", nil,
		"parts to measure beside the run end to end, of "+strings.Join(bench.Parts(), ", ")+
			" (default: all)")
	flags.StringVar(&c.Database, "database", "",
		"database to measure on, in schemas of its own (default: a private Postgres)")
	flags.StringVar(&b.profile, "cpu-profile", "",
		"file for a CPU profile of the first run end to end, to be read by go tool pprof")
	a.outputFlag(cmd)
	return cmd
}

func (b *benchmark) run(ctx context.Context) (err error) {
	b.config.Logger, b.config.Reconcile = b.app.logger, b.reconcile
	if err := b.config.Validate(); err != nil {
		return usageError(err)
	}
	if b.config.Dir, err = os.MkdirTemp("", "tally-bench-"); err != nil {
		return fmt.Errorf("make a directory for the workload: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.config.Dir)) }()
	if b.profile != "" {
		file, err := os.Create(b.profile)
		if err != nil {
			return fmt.Errorf("make the profile: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		b.config.Profile = file
	}
	if b.config.Database == "" {
		server, err := private.Start(ctx, "")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop(ctx)) }()
		b.config.Database = server.URL
	}
	report, err := bench.Run(ctx, b.config)
	if err != nil {
		return err
	}
	return b.app.render(report.Table(&b.config))
}

// reconcile runs the loop of tally run, without its log lines.
func (b *benchmark) reconcile(
	ctx context.Context, c *config.Config, s *store.Store, untilEnd bool,
	onEpoch func(*stream.Delta),
) error {
	return reconcileWith(ctx, b.app, c, s, runFlags{untilEnd: untilEnd},
		func(_ int32, d *stream.Delta) { onEpoch(d) })
}
