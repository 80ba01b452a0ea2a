package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// statusEvery is how often a run that follows looks whether its candidate still is one.
const statusEvery = time.Second

// rebuilding is what the steps of a rebuild work with.
type rebuilding struct {
	*app
	store  *store.Store
	config *config.Config
	flags  *rebuildFlags
	// sources are open at their beginning, to compare positions.
	sources []reconcile.Source
}

// rebuilds opens store and sources for a step.
func (a *app) rebuilds(
	ctx context.Context, f *rebuildFlags, do func(context.Context, *rebuilding) error,
) (err error) {
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	b := &rebuilding{app: a, store: s, config: c, flags: f}
	if b.sources, err = newSources(c, s.Pool()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSources(b.sources)) }()
	for _, source := range b.sources {
		if _, err := source.Open(ctx, "", ""); err != nil {
			return fmt.Errorf("read source %s from its beginning: %w", source.Partition(), err)
		}
	}
	return do(ctx, b)
}

func (a *app) rebuildStart(ctx context.Context, f *rebuildFlags) error {
	return a.rebuilds(ctx, f, func(ctx context.Context, b *rebuilding) error {
		_, err := b.start(ctx)
		return err
	})
}

// start begins a candidate; 0 says that there is nothing to rebuild.
func (b *rebuilding) start(ctx context.Context) (int32, error) {
	within, err := b.flags.between()
	if err != nil {
		return 0, usageError(err)
	}
	base, err := servingOf(ctx, b.store.Pool(), b.store.Schema(), b.config.Name)
	if err != nil {
		return 0, err
	}
	states, err := b.store.Standing(ctx, base.Generation)
	if err != nil {
		return 0, err
	}
	closed, err := newSources(b.config, b.store.Pool())
	if err != nil {
		return 0, err
	}
	catchUp, err := reconcile.CatchUpOf(ctx, closed, states)
	if err != nil {
		return 0, err
	}
	interval := b.flags.corrections || within != stream.Range{}
	if interval {
		within, err = b.closed(ctx, &base, within, catchUp.Watermark)
		if err != nil || within == (stream.Range{}) {
			return 0, err
		}
	}
	generation, err := b.store.Begin(ctx, store.NewCandidate{
		Registration: registration(b.config), Interval: within, Base: base.Generation, CatchUp: catchUp,
	})
	if err != nil {
		return 0, err
	}
	over := "over all that the sources have"
	if interval {
		over = fmt.Sprintf("over the event times from %s to %s", within.From, within.To)
	}
	b.printf("generation %d is a candidate beside generation %d, %s\n", generation, base.Generation, over)
	return generation, nil
}

// closed gives the interval to rebuild: that of the flags, or of the corrections; it is empty when
// there are none. Live work must be past all results that it can touch.
func (b *rebuilding) closed(
	ctx context.Context, base *serving, within stream.Range, watermark stream.Micros,
) (stream.Range, error) {
	// Which only says whether the configuration is that of what serves.
	if _, err := b.store.Register(ctx, registration(b.config)); err != nil {
		return within, err
	}
	rule := b.config.JoinRule()
	if !b.flags.corrections {
		if at := within.To.Add(reconcile.Closing(rule)); at > watermark {
			return within, usageError(fmt.Errorf("live work can still change results of the interval: the "+
				"watermark (%s) must pass %s first; tally rebuild without an interval settles all",
				watermark, at))
		}
		return within, nil
	}
	list, err := b.store.Corrections(ctx, base.Generation)
	if err != nil {
		return within, err
	}
	within, others := reconcile.ClosedCorrections(rule, list, watermark)
	if others > 0 {
		b.printf("%d corrections are left for later: live work can still change what they touch\n", others)
	}
	if within == (stream.Range{}) {
		b.printf("no open correction to settle\n")
	}
	return within, nil
}

// candidate finds the one that a step is about.
func (b *rebuilding) candidate(ctx context.Context) (*store.Generation, error) {
	list, err := b.store.Generations(ctx, b.config.Name)
	if err != nil {
		return nil, err
	}
	var found *store.Generation
	for i := range list {
		if g := &list[i]; g.ID == b.flags.generation ||
			b.flags.generation == 0 && g.Status == store.Candidate {
			found = g
		}
	}
	switch {
	case found == nil && b.flags.generation == 0:
		return nil, usageError(errors.New("there is no candidate; tally rebuild start begins one"))
	case found == nil:
		return nil, usageError(fmt.Errorf("%s has no generation %d", b.config.Name, b.flags.generation))
	case found.Status != store.Candidate:
		return nil, usageError(fmt.Errorf("generation %d is %s, no candidate", found.ID, found.Status))
	}
	return found, nil
}

func (a *app) rebuildRun(ctx context.Context, f *rebuildFlags) error {
	return a.rebuilds(ctx, f, func(ctx context.Context, b *rebuilding) error {
		g, err := b.candidate(ctx)
		if err != nil {
			return err
		}
		p := newProgress(b.app)
		stop := p.show(ctx)
		err = b.build(ctx, g, f.follow, p)
		stop()
		b.tellTroubles(b.store)
		if err == nil || p.epochs > 0 {
			b.printf("%s\n", p.summary())
		}
		return err
	})
}

// build works on the candidate until it has read all there is; where it follows, until it is no
// candidate any more.
func (b *rebuilding) build(ctx context.Context, g *store.Generation, follow bool, p *progress) error {
	version := string(b.config.Rule.Version)
	if g.RuleVersion != version || int(g.Shards) != b.config.Shards {
		return usageError(fmt.Errorf("generation %d has rule %s and %d shards, the configuration rule %s "+
			"and %d", g.ID, g.RuleVersion, g.Shards, version, b.config.Shards))
	}
	sources, err := b.sourcesOf(g)
	if err != nil {
		return err
	}
	shards, err := parseShards("", b.config.Shards)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if follow {
		go b.watch(ctx, g.ID, cancel)
	}
	err = b.work(ctx, b.config, b.store, work{
		generation: g.ID, shards: shards, sources: sources, released: g.Base, onEpoch: p.add,
		untilEnd: !follow && g.Kind == store.Full, catchUp: g.CatchUp,
		catchUpOnly: g.Kind == store.Interval,
	})
	for _, r := range reconcile.Readings(sources) {
		b.logger.Info("read what concerns the interval", "source", r.Partition, "records_read", r.Read,
			"records_given", r.Given, "from", r.From, "to", r.To)
	}
	if errors.Is(err, store.ErrRetired) {
		return nil
	}
	return err
}

// sourcesOf gives what the candidate reads: of an interval only what concerns it.
func (b *rebuilding) sourcesOf(g *store.Generation) ([]reconcile.Source, error) {
	sources, err := newSources(b.config, b.store.Pool())
	if err != nil || g.Kind == store.Full {
		return sources, err
	}
	released, err := releasedSources(b.config, b.store, g.Base)
	if err != nil {
		return nil, err
	}
	sources = append(sources, released...)
	r := b.config.JoinRule()
	widen := 2 * max(r.Before, r.After)
	return reconcile.Between(sources, stream.Range{
		From: g.Interval.From.Add(-widen), To: g.Interval.To.Add(widen),
	}, g.CatchUp)
}

// watch calls end when the generation is no candidate any more.
func (b *rebuilding) watch(ctx context.Context, generation int32, end func()) {
	ticks := time.NewTicker(statusEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		list, err := b.store.Generations(ctx, b.config.Name)
		if err != nil {
			continue // the workers tell what is wrong
		}
		for i := range list {
			if list[i].ID == generation && list[i].Status != store.Candidate {
				b.logger.Info("the candidate was settled", "generation", generation, "status", list[i].Status)
				end()
			}
		}
	}
}
