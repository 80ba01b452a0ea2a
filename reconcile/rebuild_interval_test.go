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
// Results in its scope equal one SQL join over all events but those that stay set aside, no other row
// has changed, and live work goes on.
func TestRandomIntervalRebuilds(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total rebuilds
	histories := 0
	for seed := range oracle.Seeds(t, 2000, 200) {
		r, err := newRebuilding(t, db, st, seed, int32(1+seed%3))
		if err == nil {
			err = r.interval(t)
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(r.done)
		histories++
	}
	t.Logf("%+v", total)
	if histories > 1 && (total.Settled == 0 || total.Changes == 0 || total.Live == 0 || total.Compared == 0) {
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
	open, err := r.store.Corrections(t.Context(), r.base)
	if err != nil {
		return err
	}
	open = reconcile.LeftOpen(configOf(r.history.Rule, r.rng).Rule, g.Interval, open)
	if err := r.buildInterval(t, g, open); err != nil {
		return err
	}
	return r.merge(t, g, omit(&read, open), r.shards > 1 && len(open) > 0)
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
		if within, _ = reconcile.ClosedCorrections(rule, open, low); within != (stream.Range{}) {
			return within, nil
		}
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

func (r *rebuilding) buildInterval(
	t *testing.T, g *store.Generation, open []store.OpenCorrection,
) error {
	wide := stream.Range{From: g.Interval.From - 2*r.reach(), To: g.Interval.To + 2*r.reach()}
	for shard := range r.shards {
		sources, err := reconcile.Between(sourcesOf(r.seen.Lanes), wide, g.CatchUp)
		if err != nil {
			return err
		}
		_, err = r.run(t, g.ID, shard, r.shards, nil, func(cfg *reconcile.Config) {
			cfg.Sources, cfg.CatchUp, cfg.CatchUpOnly = sources, g.CatchUp, true
			cfg.LeftOpen = open
		})
		if err != nil {
			return fmt.Errorf("build shard %d: %w", shard, err)
		}
	}
	return nil
}

// merge promotes an interval that was built over what was read when it began; unsure is true when
// one SQL join cannot tell its results.
func (r *rebuilding) merge(
	t *testing.T, g *store.Generation, read *oracle.History, unsure bool,
) error {
	scope := stream.Range{From: g.Interval.From - r.reach(), To: g.Interval.To + r.reach()}
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
	if err == nil && !unsure {
		err = r.inside(t, read, scope)
	}
	err = errors.Join(err, r.merged(t, g, scope))
	if err == nil && !r.sealed {
		err = errors.Join(r.goOn(t, r.base, r.shards, nil), r.merged(t, g, scope))
		if err == nil && !unsure {
			err = r.inside(t, read, scope)
		}
	}
	if err != nil {
		return fmt.Errorf("merged %v: %w", g.Interval, err)
	}
	return nil
}

// inside compares the results in a scope with one SQL join over what was read.
func (r *rebuilding) inside(t *testing.T, read *oracle.History, scope stream.Range) error {
	states, err := r.store.Standing(t.Context(), r.base)
	if err != nil {
		return err
	}
	want, err := r.standing(t.Context(), read, states)
	if err != nil {
		return err
	}
	want = inScope(want, r.history, scope)
	got, err := active(t.Context(), r.db, r.base)
	if got = inScope(got, r.history, scope); err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("in scope are\n%q\nwant\n%q", got, want)
	}
	r.done.Inside++
	return err
}

// outside gives the whole rows of the base's results that have no member in a scope.
func (r *rebuilding) outside(t *testing.T, scope stream.Range) ([]string, error) {
	return lines(t.Context(), r.db, `select m::text from tally.match m where generation_id = $1
		and not coalesce(left_time >= $2::text::timestamptz and left_time < $3::text::timestamptz, false)
		and not coalesce(right_time >= $2::text::timestamptz and right_time < $3::text::timestamptz,
			false)`, r.base, scope.From.String(), scope.To.String())
}

// merged checks the base that an interval was merged into.
func (r *rebuilding) merged(t *testing.T, g *store.Generation, scope stream.Range) error {
	if err := errors.Join(r.whole(t, r.base, r.shards), r.served(t, r.base)); err != nil {
		return err
	}
	open, err := r.store.Corrections(t.Context(), r.base)
	if err != nil {
		return err
	}
	left := reconcile.LeftOpen(configOf(r.history.Rule, r.rng).Rule, g.Interval, open)
	for i := range open {
		if at := r.catchUp.Of(open[i].Partition); !slices.Contains(left, open[i]) &&
			!beyond(open[i].Position, at.To) {
			return fmt.Errorf("%+v is still open", open[i])
		}
	}
	want, unsure, err := r.expected(t.Context(), r.history.Rule, r.base, r.shards)
	if err != nil || unsure || r.forgets[r.base] {
		return err
	}
	all, err := active(t.Context(), r.db, r.base)
	if err != nil {
		return err
	}
	r.done.Compared++
	if got, want := outOf(all, r.history, scope), outOf(want, r.history, scope); !slices.Equal(
		got, want) {
		return fmt.Errorf("out of scope are\n%q\nwant\n%q", got, want)
	}
	return nil
}

// outOf keeps the results without a member in a range.
func outOf(lines []string, history *oracle.History, scope stream.Range) []string {
	in := inScope(lines, history, scope)
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return slices.Contains(in, line)
	})
}

// beyond tells whether a position, an ordinal, is after another one.
func beyond(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
