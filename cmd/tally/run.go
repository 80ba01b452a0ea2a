package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/released"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/compare"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// onlyShard is the number of the one shard this version has.
const onlyShard = 0

// runFlags say how far a run goes.
type runFlags struct {
	untilEnd, seal bool
	shards         string
}

func newRunCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Reconcile until stopped, or until the sources end",
		Long: "run reads both sides, joins them and commits one epoch after the other. It goes on\n" +
			"where the last run stopped, however that ended. SIGINT and SIGTERM stop it after the\n" +
			"epoch in flight. A run started on the same reconciliation takes over from this one,\n" +
			"which then ends with exit code 5 at its next epoch and writes nothing more.",
		Example: "  tally run                       follow the sources until stopped\n" +
			"  tally run --until-end           read what is there now; what may still change waits\n" +
			"  tally run --until-end --seal    read what is there now; nothing will follow",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.untilEnd, "until-end", false, "stop when every source is read to its present end")
	flags.BoolVar(&f.seal, "seal", false,
		"with --until-end: the sources are complete, so every unmatched row becomes final; events\n"+
			"that come all the same are set aside as corrections")
	flags.StringVar(&f.shards, "shards", "0", "shards to work on; this version has the shard 0 only")
	return cmd
}

func (f *runFlags) validate() error {
	switch {
	case f.seal && !f.untilEnd:
		return usageError(errors.New("--seal says that the sources are complete; it needs --until-end"))
	case f.shards != "0" && f.shards != "0-0":
		return usageError(fmt.Errorf("--shards %s: this version has the shard 0 only", f.shards))
	}
	return nil
}

func (a *app) run(ctx context.Context, f runFlags) (err error) {
	if err := f.validate(); err != nil {
		return err
	}
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, key := range c.Inert() {
		a.logger.Warn(inertText(key))
	}
	if err := a.tellPooling(ctx, s); err != nil {
		return err
	}
	p := newProgress(a)
	stop := p.show(ctx)
	err = reconcileWith(ctx, a, c, s, f, p.add)
	stop()
	a.tellTroubles(s)
	if err == nil || p.epochs > 0 {
		a.printf("%s\n", p.summary())
	}
	return err
}

// reconcileWith runs the loop over the configuration's sources. It returns nil when ctx ends.
func reconcileWith(
	ctx context.Context, a *app, c *config.Config, s *store.Store, f runFlags,
	onEpoch func(*stream.Delta),
) error {
	generation, err := s.Register(ctx, store.Registration{
		Name: c.Name, RuleVersion: string(c.Rule.Version), Rule: []byte(c.RuleJSON()),
		Shards: c.Shards,
	})
	if err != nil {
		return err
	}
	joined, err := joinConfig(c)
	if err != nil {
		return usageError(err)
	}
	sources, err := loopSources(c, s, generation)
	if err != nil {
		return err
	}
	worker := workerName()
	loop := reconcile.Config{
		Join:    joined,
		Sources: sources,
		Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
			shard, err := s.Take(ctx, generation, onlyShard, worker)
			if err != nil {
				return nil, store.State{}, err
			}
			return shard, shard.State, nil
		},
		MaxEvents: c.Epoch.MaxEvents,
		MaxDelay:  c.Epoch.MaxDelay.Std(),
		UntilEnd:  f.untilEnd,
		Seal:      f.seal,
		Logger:    a.logger,
		OnEpoch:   onEpoch,
	}
	if a.adaptLoop != nil {
		a.adaptLoop(&loop)
	}
	return reconcile.Run(ctx, loop)
}

func joinConfig(c *config.Config) (join.Config, error) {
	comparer, err := compare.New(c.CompareFields())
	if err != nil {
		return join.Config{}, err
	}
	return join.Config{
		Rule:           c.JoinRule(),
		Compare:        comparer,
		MaxAhead:       c.Limits.MaxAhead.Std(),
		MaxSkew:        c.Limits.MaxSkew.Std(),
		MaxPairsPerKey: c.Limits.MaxPairsPerKey,
		CacheRows:      c.State.CacheRows,
		// A day's stop lets millions of rows expire at once; they close over several epochs. An
		// epoch closes about as many rows as it reads, twice where windows close before horizons:
		// the bound is well above that, so that the watermark keeps up.
		ClosingsMax:    max(10*c.Epoch.MaxEvents, 10000),
		OutOfOrderness: [2]time.Duration{c.Left.OutOfOrderness.Std(), c.Right.OutOfOrderness.Std()},
		IdleAfter:      [2]time.Duration{c.Left.IdleAfter.Std(), c.Right.IdleAfter.Std()},
	}, nil
}

// loopSources gives the configured sources and, for each side, the one that reads released records
// again.
func loopSources(c *config.Config, s *store.Store, generation int32) ([]reconcile.Source, error) {
	configured, err := newSources(c, s.Pool())
	if err != nil {
		return nil, err
	}
	sources := make([]reconcile.Source, 0, len(configured)+2)
	for _, source := range configured {
		sources = append(sources, source)
	}
	list := func(
		ctx context.Context, side stream.Side, after int64, limit int,
	) ([]store.ReleasedRow, error) {
		return s.Released(ctx, generation, onlyShard, side, after, limit)
	}
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		source, err := released.New(side, c.Mapping(side), list)
		if err != nil {
			return nil, usageError(err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// workerName tells people where the worker of a shard runs.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
