package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/released"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/compare"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

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
			"epoch in flight.\n\n" +
			"Several runs of one reconciliation share its shards as the members of a Kafka consumer\n" +
			"group share partitions: each works on its part, one that is started gets its share from\n" +
			"the others, and what one leaves the others take over, at once when it stops and after\n" +
			"lease_for when it dies. A run that has no shard waits for one. A run that is kept from\n" +
			"its lease, by a pause or a network cut, can't write any more and asks for its shards\n" +
			"again. With --until-end a run waits for the shards that others work on, and reads each\n" +
			"to its end; only when a shard is taken over from it meanwhile does it leave that one,\n" +
			"finish the others and end with exit code 5.",
		Example: "  tally run                       follow the sources until stopped\n" +
			"  tally run --shards 0-3          work on these shards only\n" +
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
	flags.StringVar(&f.shards, "shards", "", "shards to work on, such as 2 or 0,2,5-7 (default all)")
	return cmd
}

func (f *runFlags) validate() error {
	if f.seal && !f.untilEnd {
		return usageError(errors.New("--seal says that the sources are complete; it needs --until-end"))
	}
	return nil
}

func (a *app) run(ctx context.Context, f runFlags) (err error) {
	if err := f.validate(); err != nil {
		return err
	}
	s, c, err := a.open(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // stopped before it began
	case err != nil:
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
	switch {
	case p.epochs > 0 || err == nil && ctx.Err() == nil:
		a.printf("%s\n", p.summary())
	case err == nil:
		a.printf("stopped before the first epoch\n")
	}
	return err
}

// reconcileWith works on what serves, also when that becomes another generation of the same rule. It
// returns nil when ctx ends.
func reconcileWith(
	ctx context.Context, a *app, c *config.Config, s *store.Store, f runFlags,
	onEpoch func(shard int32, d *stream.Delta),
) error {
	shards, err := parseShards(f.shards, c.Shards)
	if err != nil {
		return usageError(err)
	}
	for {
		w := work{shards: shards, untilEnd: f.untilEnd, seal: f.seal, onEpoch: onEpoch}
		if w.sources, err = newSources(c, s.Pool()); err != nil {
			return err
		}
		w.generation, err = s.Register(ctx, registration(c))
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if err != nil {
			return err
		}
		w.released = w.generation
		err = a.work(ctx, c, s, w)
		if !errors.Is(err, store.ErrRetired) || ctx.Err() != nil {
			return err
		}
		a.logger.Info("another generation serves now", "instead_of", w.generation)
	}
}

func registration(c *config.Config) store.Registration {
	return store.Registration{
		Name: c.Name, RuleVersion: string(c.Rule.Version), Rule: []byte(c.RuleJSON()),
		Shards: c.Shards,
	}
}

// work is a generation that a process works on, and how far.
type work struct {
	generation     int32
	shards         []int32
	sources        []reconcile.Source
	untilEnd, seal bool
	// catchUp is where the base of a candidate stood, nil for what serves; only stops there.
	catchUp     *stream.CatchUp
	catchUpOnly bool
	// leftOpen are the corrections that an interval does not settle.
	leftOpen []store.OpenCorrection
	// released is the generation whose released records are read again.
	released int32
	onEpoch  func(shard int32, d *stream.Delta)
}

// work shares the shards of a generation with others until ctx ends, which is no error, or until the
// end that it is to have.
func (a *app) work(ctx context.Context, c *config.Config, s *store.Store, w work) error {
	joined, err := joinConfig(c)
	if err != nil {
		return usageError(err)
	}
	kept, err := upkeepOf(c, s, w.generation, a.logger)
	if err != nil {
		return usageError(err)
	}
	worker := workerName()
	leases := reconcile.StoreLeases(s, w.generation, worker)
	if kept.Archive != nil {
		leases = reconcile.WithArchive(leases, kept.Archive, a.logger)
	}
	err = reconcile.RunFleet(ctx, reconcile.FleetConfig{
		Loop: reconcile.Config{
			Join:        joined,
			Sources:     w.sources,
			LeaseFor:    s.LeaseFor(),
			MaxEvents:   c.Epoch.MaxEvents,
			MaxDelay:    c.Epoch.MaxDelay.Std(),
			UntilEnd:    w.untilEnd,
			Seal:        w.seal,
			CatchUp:     w.catchUp,
			CatchUpOnly: w.catchUpOnly,
			LeftOpen:    w.leftOpen,
			Logger:      a.logger,
		},
		Shards: w.shards,
		Of:     int32(c.Shards),
		Worker: worker,
		Leases: leases,
		Own: func(int32) ([]reconcile.Source, error) {
			if w.catchUpOnly {
				return nil, nil // they are among the sources, narrowed like those
			}
			return releasedSources(c, s, w.released)
		},
		OnEpoch: w.onEpoch,
		Upkeep:  kept.Run,
		Adapt:   a.adaptLoop,
	})
	if err == nil && w.untilEnd {
		kept.Finish(ctx, w.shards)
	}
	return err
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
		ClosingsMax: max(10*c.Epoch.MaxEvents, 10000),
		// One key with many events on both sides must not make an epoch without bounds.
		PairsMax:       max(10*c.Epoch.MaxEvents, 10000),
		OutOfOrderness: [2]time.Duration{c.Left.OutOfOrderness.Std(), c.Right.OutOfOrderness.Std()},
		IdleAfter:      [2]time.Duration{c.Left.IdleAfter.Std(), c.Right.IdleAfter.Std()},
	}, nil
}

// releasedSources gives, for each side, the source that reads released records again.
func releasedSources(
	c *config.Config, s *store.Store, generation int32,
) (sources []reconcile.Source, err error) {
	list := func(
		ctx context.Context, side stream.Side, after int64, limit int,
	) ([]store.ReleasedRow, error) {
		return s.Released(ctx, generation, side, after, limit)
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

// workerName tells people where the worker of a shard runs, and the workers apart, also where the
// same process number is given out again.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s/%d-%.4s", host, os.Getpid(), uuid.NewString())
}
