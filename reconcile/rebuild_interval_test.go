package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestRandomIntervalRebuilds: an interval of a base that set events aside is rebuilt and merged.
// Results in its scope equal one SQL join over all events, no other row has changed, and live work
// goes on.
func TestRandomIntervalRebuilds(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total rebuilds
	for seed := range oracle.Seeds(t, 2000, 20) {
		r, err := newRebuilding(t, db, st, seed, int32(1+seed%3))
		if err == nil {
			err = r.interval(t)
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(r.done)
	}
	t.Logf("%+v", total)
	if total.Settled == 0 || total.Changes == 0 || total.Live == 0 || total.Compared == 0 {
		t.Errorf("some of it was never tried: %+v", total)
	}
}

func (r *rebuilding) interval(t *testing.T) error {
	if err := r.served(t, r.base); err != nil {
		return fmt.Errorf("at first: %w", err)
	}
	within, err := r.someInterval(t)
	if err != nil || within == (stream.Range{}) {
		r.done.None++
		return err
	}
	g, err := r.begin(t, r.history.Rule, r.shards, within)
	if err != nil {
		return err
	}
	read := *r.seen
	if !r.sealed && r.rng.IntN(3) == 0 {
		if err := r.goOn(t, r.base, r.shards, nil); err != nil {
			return err
		}
	}
	if err := r.buildInterval(t, g); err != nil {
		return err
	}
	return r.merge(t, g, &read)
}

// someInterval gives that of the corrections past live work, or another one past it; empty where
// there is none.
func (r *rebuilding) someInterval(t *testing.T) (within stream.Range, err error) {
	states, err := r.store.Standing(t.Context(), r.base)
	if err != nil {
		return within, err
	}
	low := stream.Infinity
	for _, state := range states {
		low = min(low, state.Watermark)
	}
	open, err := r.store.Corrections(t.Context(), r.base)
	if err != nil {
		return within, err
	}
	rule := configOf(r.history.Rule, r.rng).Rule
	if r.rng.IntN(3) > 0 {
		within, _ = reconcile.ClosedCorrections(rule, open, low)
		return within, nil
	}
	for range 10 {
		within = someRange(r.history, r.rng)
		if within.To.Add(reconcile.Closing(rule)) <= low {
			return within, nil
		}
	}
	return stream.Range{}, nil
}

func (r *rebuilding) reach() stream.Micros {
	return stream.Micros(max(r.history.Rule.Before, r.history.Rule.After).Microseconds())
}

func (r *rebuilding) buildInterval(t *testing.T, g *store.Generation) error {
	wide := stream.Range{From: g.Interval.From - 2*r.reach(), To: g.Interval.To + 2*r.reach()}
	for shard := range r.shards {
		sources, err := reconcile.Between(sourcesOf(r.seen.Lanes), wide, g.CatchUp)
		if err != nil {
			return err
		}
		_, err = r.run(t, g.ID, shard, r.shards, nil, func(cfg *reconcile.Config) {
			cfg.Sources, cfg.CatchUp, cfg.CatchUpOnly = sources, g.CatchUp, true
		})
		if err != nil {
			return fmt.Errorf("build shard %d: %w", shard, err)
		}
	}
	return nil
}

// merge promotes an interval that was built over what was read when it began.
func (r *rebuilding) merge(t *testing.T, g *store.Generation, read *oracle.History) error {
	scope := stream.Range{From: g.Interval.From - r.reach(), To: g.Interval.To + r.reach()}
	inside, err := r.inside(t, read, scope)
	if err != nil {
		return err
	}
	rows, err := r.outside(t, scope)
	if err == nil {
		err = r.promote(t, g)
	}
	if err != nil {
		return err
	}
	after, err := r.outside(t, scope)
	if err == nil && !slices.Equal(after, rows) {
		err = fmt.Errorf("rows outside of %v were\n%q\nand are\n%q", scope, rows, after)
	}
	err = errors.Join(err, r.merged(t, g, inside, scope))
	if err != nil {
		return fmt.Errorf("merged %v: %w", g.Interval, err)
	}
	if r.sealed {
		return nil
	}
	err = errors.Join(r.goOn(t, r.base, r.shards, nil), r.merged(t, g, inside, scope))
	if err != nil {
		return fmt.Errorf("merged %v and gone on: %w", g.Interval, err)
	}
	return nil
}

// inside gives the results in a scope by one SQL join over all that was read, what was set aside
// included.
func (r *rebuilding) inside(
	t *testing.T, read *oracle.History, scope stream.Range,
) ([]string, error) {
	states, err := r.store.Standing(t.Context(), r.base)
	if err != nil {
		return nil, err
	}
	lines, err := r.standing(t.Context(), read, states)
	return inScope(lines, r.history, scope), err
}

// outside gives the whole rows of the base's results that have no member in a scope.
func (r *rebuilding) outside(t *testing.T, scope stream.Range) ([]string, error) {
	return lines(t.Context(), r.db, `select m::text from tally.match m where generation_id = $1
		and not coalesce(left_time >= $2::text::timestamptz and left_time < $3::text::timestamptz, false)
		and not coalesce(right_time >= $2::text::timestamptz and right_time < $3::text::timestamptz,
			false)`, r.base, scope.From.String(), scope.To.String())
}

// merged checks the base, which what is inside of the scope was merged into.
func (r *rebuilding) merged(
	t *testing.T, g *store.Generation, inside []string, scope stream.Range,
) error {
	if err := errors.Join(r.whole(t, r.base, r.shards), r.served(t, r.base)); err != nil {
		return err
	}
	all, err := active(t.Context(), r.db, r.base)
	if err != nil {
		return err
	}
	if got := inScope(all, r.history, scope); !slices.Equal(got, inside) {
		return fmt.Errorf("in scope are\n%q\nwant\n%q", got, inside)
	}
	open, err := r.store.Corrections(t.Context(), r.base)
	if err != nil {
		return err
	}
	rule := configOf(r.history.Rule, r.rng).Rule
	for i := range open {
		at, changed := r.catchUp.Of(open[i].Partition), reconcile.Changed(rule, &open[i])
		if changed.From >= g.Interval.From && changed.To <= g.Interval.To &&
			(len(open[i].Position) < len(at.To) || open[i].Position == at.To) {
			return fmt.Errorf("%+v is still open", open[i])
		}
	}
	want, moved, err := r.expected(t.Context(), r.history.Rule, r.base, r.shards)
	if err != nil || moved || r.forgets {
		return err
	}
	r.done.Compared++
	out := func(lines []string) []string {
		in := inScope(lines, r.history, scope)
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			return slices.Contains(in, line)
		})
	}
	if got, want := out(all), out(want); !slices.Equal(got, want) {
		return fmt.Errorf("out of scope are\n%q\nwant\n%q", got, want)
	}
	return nil
}
