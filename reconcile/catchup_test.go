package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// candidacy is a generation that has worked live through a part of a history, and a candidate that
// catches up with it.
type candidacy struct {
	db      *testenv.Database
	store   *store.Store
	history *oracle.History
	rng     *rand.Rand
	// seen is the part of the history that the base has read; catchUp is where it stands then.
	seen    *oracle.History
	catchUp stream.CatchUp
	// wide keeps the number of closings from moving the watermark in steps.
	wide bool
	// stops bounds how often the work on a shard is stopped.
	stops  int
	reaped reaped
	// sealed is true when the base has read its sources to an end that nothing follows.
	sealed bool
	// forgets is true of a generation once it has accepted an event although a higher revision of
	// its id was read before and not set aside: that had left live state without a result.
	forgets map[int32]bool
	// onStop, when set, is called after a run was stopped.
	onStop func(generation int32) error
}

// reaped counts what candidacies went through.
type reaped struct{ Corrections, Runs, Held, Released, Live, Spilled int }

func (r *reaped) add(o reaped) {
	r.Corrections += o.Corrections
	r.Runs += o.Runs
	r.Held += o.Held
	r.Released += o.Released
	r.Live += o.Live
	r.Spilled += o.Spilled
}

// newCandidacy runs the base, in so many shards, over a random part of the seed's history.
func newCandidacy(
	t *testing.T, db *testenv.Database, st *store.Store, seed uint64, base, shards int32,
) (*candidacy, error) {
	lowest := int64(-100)
	if shards > 1 { // no shard remembers a first revision of another
		lowest = 1
	}
	flavour := oracle.Adversarial
	if seed%4 == 0 {
		flavour = oracle.Confluent
	}
	c := &candidacy{
		db: db, store: st, stops: 2, forgets: map[int32]bool{}, rng: rand.New(rand.NewPCG(seed, 7)),
		history: tame(oracle.Generate(seed, flavour), lowest),
	}
	seen := *c.history
	seen.Lanes = slices.Clone(seen.Lanes)
	for i := range seen.Lanes {
		if n := len(seen.Lanes[i].Records); c.rng.IntN(3) > 0 {
			seen.Lanes[i].Records = seen.Lanes[i].Records[:n-c.rng.IntN(n/2+1)]
		}
	}
	c.seen = &seen
	generation := c.register(t, "base", base)
	c.sealed = c.rng.IntN(3) == 0
	for shard := range base {
		deltas, err := c.run(t, generation, shard, base, seen.Lanes, func(cfg *reconcile.Config) {
			cfg.MaxEvents, cfg.UntilEnd, cfg.Seal = 1+c.rng.IntN(8), true, c.sealed
		})
		if err != nil {
			return nil, fmt.Errorf("shard %d of the base: %w", shard, err)
		}
		for _, d := range deltas {
			c.reaped.Corrections += len(d.Corrections)
		}
		c.remember(generation, deltas)
	}
	states, err := c.states(t.Context(), generation, base)
	if err != nil {
		return nil, err
	}
	c.catchUp, err = reconcile.CatchUpOf(t.Context(), sourcesOf(seen.Lanes), states)
	return c, err
}

// tame leaves out what one SQL join can't tell: records that are no events, conflicting contents,
// and revisions below the lowest.
func tame(history *oracle.History, lowest int64) *oracle.History {
	first := map[string]stream.Event{}
	for i := range history.Lanes {
		lane := &history.Lanes[i]
		var kept []stream.Record
		for _, r := range lane.Records {
			name := fmt.Sprint(lane.Side, r.Event.ID, "/", r.Event.Revision)
			known, again := first[name]
			if r.Reason != "" || r.Event.Revision < lowest || again && !known.SameContent(&r.Event) {
				continue
			}
			first[name] = r.Event
			r.Position = strconv.Itoa(len(kept) + 1)
			kept = append(kept, r)
		}
		lane.Records = kept
	}
	return history
}

func sourcesOf(lanes []oracle.Slice) (sources []reconcile.Source) {
	for _, lane := range lanes {
		sources = append(sources, &laneSource{lane: lane})
	}
	return sources
}

func (c *candidacy) register(t *testing.T, name string, shards int32) int32 {
	t.Helper()
	generation, err := c.store.Register(t.Context(), store.Registration{
		Name:        fmt.Sprintf("%s %s %d", t.Name(), name, c.history.Seed),
		RuleVersion: c.history.Rule.Version, Rule: ruleJSON(c.history.Rule), Shards: int(shards),
	})
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

func ruleJSON(r oracle.Rule) []byte {
	return fmt.Appendf(nil, `{"join": %q, "before_us": %d, "after_us": %d}`, r.Join,
		r.Before.Microseconds(), r.After.Microseconds())
}

func (c *candidacy) states(
	ctx context.Context, generation, shards int32,
) (states []store.State, err error) {
	for shard := range shards {
		h, err := c.store.Take(ctx, generation, shard, "look")
		if err != nil {
			return nil, err
		}
		states = append(states, h.State)
		if err := h.Leave(ctx, "done"); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// run works on one shard, over and over where it is stopped at a random epoch, and gives what it
// committed.
func (c *candidacy) run(
	t *testing.T, generation, shard, of int32, lanes []oracle.Slice,
	adapt func(*reconcile.Config),
) (deltas []*stream.Delta, err error) {
	for left := c.stops; ; left-- {
		ctx, stop := context.WithCancel(t.Context())
		last := c.rng.IntN(10)
		var cut atomic.Bool
		cfg := reconcile.Config{
			Join: configOf(c.history.Rule, c.rng), Sources: sourcesOf(lanes),
			Logger:    slog.New(slog.NewTextHandler(t.Output(), nil)),
			MaxEvents: 1 + c.rng.IntN(30), MaxDelay: time.Millisecond,
			Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
				h, err := c.store.Take(ctx, generation, shard, "test")
				if err != nil {
					return nil, store.State{}, err
				}
				return h, h.State, nil
			},
			OnEpoch: func(d *stream.Delta) {
				deltas = append(deltas, d)
				if last--; last < 0 && left > 0 {
					cut.Store(true)
					stop()
				}
			},
		}
		if cfg.Join.Shard, cfg.Join.Shards = shard, of; c.wide {
			cfg.Join.ClosingsMax = 1 << 20
		}
		adapt(&cfg)
		err := reconcile.Run(ctx, cfg)
		stop()
		c.reaped.Runs++
		if err != nil || !cut.Load() {
			return deltas, err
		}
		if c.onStop != nil {
			if err := c.onStop(generation); err != nil {
				return nil, err
			}
		}
	}
}

// count notes what a candidate went through.
func (c *candidacy) count(deltas []*stream.Delta) {
	for _, d := range deltas {
		switch {
		case d.WatermarkBefore >= c.catchUp.Watermark:
			c.reaped.Live++
		case d.WatermarkAfter > d.WatermarkBefore:
			c.reaped.Released++
		default:
			c.reaped.Held++
		}
		if len(d.Added) > 0 && d.Added[0].Spilled && d.WatermarkBefore == stream.NegInfinity {
			c.reaped.Spilled++
		}
	}
}

// equalsBatch compares the active rows of a generation with one SQL join over all that the base has
// read, of which the unmatched events are as final as its watermark makes them.
func (c *candidacy) equalsBatch(t *testing.T, generation int32) error {
	t.Helper()
	all, err := batchJoin(t.Context(), c.db, c.seen)
	if err != nil {
		return err
	}
	times := map[string]stream.Micros{}
	for _, lane := range c.seen.Lanes {
		for _, r := range lane.Records {
			times[fmt.Sprintf("%s %s/%d", lane.Side, r.Event.ID, r.Event.Revision)] = r.Event.Time
		}
	}
	var want []string
	for _, line := range all {
		status, members, _ := strings.Cut(line, " ")
		if status == string(stream.Final) {
			left, right, _ := strings.Cut(members, " ")
			side, label := stream.Left, left
			if left == "-" {
				side, label = stream.Right, right
			}
			status = string(unmatched(&c.history.Rule, c.catchUp.Watermark, side,
				times[side.String()+" "+label]))
		}
		if status != "" {
			want = append(want, status+" "+members)
		}
	}
	slices.Sort(want)
	got, err := active(t.Context(), c.db, generation)
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("released at %s, active rows are\n%q\nwant\n%q", c.catchUp.Watermark, got, want)
	}
	return err
}

// unmatched gives the status of an event that has no partner at a watermark, empty for none.
func unmatched(rule *oracle.Rule, w stream.Micros, side stream.Side, at stream.Micros) stream.Status {
	switch {
	case w > rule.Horizon(side, at):
		return stream.Final
	case rule.Provisional == oracle.Eager,
		rule.Provisional == oracle.AtWindowClose && w > rule.WindowEnd(side, at):
		return stream.Provisional
	}
	return ""
}

// TestCandidateEqualsTheBatchJoin: a candidate that is built beside a live generation, however often
// it is stopped, ends with what one SQL join makes of everything that one had read, whatever of it
// came too late there. Some of them stop at the positions although the sources go on.
func TestCandidateEqualsTheBatchJoin(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total reaped
	histories := 0
	for seed := range oracle.Seeds(t, 2000, 100) {
		histories++
		shards := int32(1 + seed%3)
		c, err := newCandidacy(t, db, st, seed, int32(1+seed/3%5/4), shards)
		if err == nil {
			err = c.build(t, shards)
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d), %d shards: %v", seed, seed, shards, err)
		}
		total.add(c.reaped)
	}
	t.Logf("%+v", total)
	if least := histories / 10; total.Corrections < least || total.Held < least ||
		total.Released < least || total.Spilled < least {
		t.Errorf("some of it was hardly tried: %+v", total)
	}
}

func (c *candidacy) build(t *testing.T, shards int32) error {
	generation := c.register(t, "candidate", shards)
	lanes, only := c.seen.Lanes, false
	if c.history.Seed%2 == 0 {
		lanes, only = c.history.Lanes, true
	}
	for shard := range shards {
		deltas, err := c.run(t, generation, shard, shards, lanes, func(cfg *reconcile.Config) {
			cfg.CatchUp, cfg.CatchUpOnly, cfg.UntilEnd = &c.catchUp, only, !only
		})
		if err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
		c.count(deltas)
		for _, d := range deltas {
			if n := len(d.Corrections); n > 0 {
				return fmt.Errorf("shard %d: epoch %d sets %d events aside", shard, d.Epoch, n)
			}
		}
	}
	states, err := c.states(t.Context(), generation, shards)
	if err != nil {
		return err
	}
	for shard, state := range states {
		if state.Watermark != c.catchUp.Watermark {
			return fmt.Errorf("shard %d ends at %s, want %s", shard, state.Watermark, c.catchUp.Watermark)
		}
		for i, p := range state.Progress {
			if want := c.catchUp.Partitions[i]; p.To != want.To ||
				state.Watermark.Finite() && p.Watermark != want.Watermark {
				return fmt.Errorf("shard %d ends at %+v, want %+v", shard, p, want)
			}
		}
	}
	return c.equalsBatch(t, generation)
}
