package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	catchUp, err := reconcile.CatchUpOf(ctx, b.sources, states)
	if err != nil {
		return 0, err
	}
	if err := b.stillThere(ctx, &catchUp); err != nil {
		return 0, err
	}
	interval := b.flags.corrections || within != stream.Range{}
	if interval {
		within, err = b.closed(ctx, &base, within, catchUp.Watermark)
		if err != nil || within == (stream.Range{}) {
			return 0, err
		}
	}
	if err := b.tellOthers(ctx); err != nil {
		return 0, err
	}
	generation, err := b.store.Begin(ctx, store.NewCandidate{
		Registration: registration(b.config), Interval: within, Base: base.Generation, CatchUp: catchUp,
	})
	if err != nil {
		return 0, err
	}
	over := "over all that the sources have"
	if interval {
		over = fmt.Sprintf("over the event times from %s to %s", short(within.From), short(within.To))
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
				short(watermark), short(at)))
		}
		return within, nil
	}
	list, err := b.store.Corrections(ctx, base.Generation)
	if err != nil {
		return within, err
	}
	within, others := reconcile.ClosedCorrections(rule, list, watermark)
	if others > 0 {
		b.printf("left for later, since live work can still change what it touches: %s\n",
			count(int64(others), "correction"))
	}
	if within == (stream.Range{}) {
		b.printf("no open correction to settle\n")
	}
	return within, nil
}

// tellOthers says which candidates there are already.
func (b *rebuilding) tellOthers(ctx context.Context) error {
	list, err := b.store.Generations(ctx, b.config.Name)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Status == store.Candidate {
			b.printf("generation %d is a candidate already, and stays one: --generation %d, of the other "+
				"steps, goes on with it or abandons it\n", list[i].ID, list[i].ID)
		}
	}
	return nil
}

// stillThere makes sure that there is each source that the serving generation has read. One that is
// not what it was is told: it may hold the same, which validation shows, or end too early, which the
// build does.
func (b *rebuilding) stillThere(ctx context.Context, catchUp *stream.CatchUp) error {
	sources, err := newSources(b.config, b.store.Pool())
	if err != nil {
		return err
	}
	for i := range catchUp.Partitions {
		p := &catchUp.Partitions[i]
		if p.To == "" || p.Source == reconcile.QuarantineSource {
			continue
		}
		at := slices.IndexFunc(sources, func(s reconcile.Source) bool {
			return s.Partition() == p.Partition
		})
		if at < 0 {
			return usageError(fmt.Errorf("what serves has read source %s, which the configuration does not "+
				"have any more; a rebuild without it would lose what came from it", p.Partition))
		}
		_, err := sources[at].Open(ctx, p.To, p.Identity)
		if errors.Is(err, stream.ErrPositionLost) {
			b.logger.Warn("a source is not what it was; what it has now is read, and compared",
				"source", p.Partition.String(), "error", err)
			err = nil
		}
		if err != nil {
			return fmt.Errorf("find what serves has read of source %s: %w", p.Partition, err)
		}
		if err := sources[at].Close(); err != nil {
			return err
		}
	}
	return nil
}

// short writes a time without a fraction of zero.
func short(m stream.Micros) string {
	if text, whole := strings.CutSuffix(m.String(), ".000000Z"); whole {
		return text + "Z"
	}
	return m.String()
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
	catchesUp, err := b.catchesUp(ctx, g)
	if err != nil {
		return err
	}
	leftOpen, err := b.leftOpen(ctx, g)
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
		// What serves has then read a last line without its end.
		seal:        !follow && catchesUp && g.CatchUp.Watermark == stream.Infinity,
		catchUpOnly: g.Kind == store.Interval, leftOpen: leftOpen,
	})
	for _, r := range reconcile.Readings(sources) {
		if r.To == "" {
			continue // such as released records, when there are none
		}
		b.logger.Info("read what concerns the interval", "source", r.Partition.String(),
			"records_read", r.Read, "records_given", r.Given, "from", r.From, "to", r.To)
	}
	if errors.Is(err, store.ErrRetired) {
		return nil
	}
	return err
}

// leftOpen gives the corrections that an interval does not settle.
func (b *rebuilding) leftOpen(
	ctx context.Context, g *store.Generation,
) ([]store.OpenCorrection, error) {
	if g.Kind != store.Interval {
		return nil, nil
	}
	list, err := b.store.Corrections(ctx, g.Base)
	return reconcile.LeftOpen(b.config.JoinRule(), g.Interval, list), err
}

// catchesUp tells whether a full candidate has yet to catch up.
func (b *rebuilding) catchesUp(ctx context.Context, g *store.Generation) (bool, error) {
	if g.Kind == store.Interval {
		return false, nil
	}
	states, err := b.store.Standing(ctx, g.ID)
	return held(states, g), err
}

// held tells whether a shard of a candidate has yet to catch up.
func held(states []store.State, g *store.Generation) bool {
	return slices.ContainsFunc(states, func(s store.State) bool {
		return s.Watermark < g.CatchUp.Watermark
	})
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
