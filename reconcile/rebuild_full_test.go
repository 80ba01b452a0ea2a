package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestRandomFullRebuilds: a base that set events aside is rebuilt beside its live work, by a
// candidate that is stopped over and over; promoted, what is served equals one SQL join over all
// events, goes on live, and what served before can serve again.
func TestRandomFullRebuilds(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total rebuilds
	histories := 0
	for seed := range oracle.Seeds(t, 2000, 200) {
		r, err := newRebuilding(t, db, st, seed, int32(1+seed%3))
		if err == nil {
			err = r.full(t, int32(1+seed/3%3))
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(r.done)
		histories++
	}
	t.Logf("%+v", total)
	if histories > 1 && (total.Settled == 0 || total.Changes == 0 || total.Live == 0) {
		t.Errorf("some of it was never tried: %+v", total)
	}
}

func (r *rebuilding) full(t *testing.T, shards int32) error {
	if err := r.served(t, r.base); err != nil {
		return fmt.Errorf("at first: %w", err)
	}
	g, err := r.begin(t, r.history.Rule, shards, stream.Range{})
	if err != nil {
		return err
	}
	if !r.sealed && r.rng.IntN(3) == 0 {
		if err := r.goOn(t, r.base, r.shards, nil); err != nil {
			return err
		}
	}
	if err := r.buildFull(t, g.ID, shards, &r.catchUp); err != nil {
		return err
	}
	before, err := active(t.Context(), r.db, r.base)
	if err == nil {
		err = r.promote(t, g)
	}
	if err == nil {
		err = r.promoted(t, g.ID, shards)
	}
	if err != nil {
		return fmt.Errorf("promoted: %w", err)
	}
	if !r.sealed {
		err = errors.Join(r.goOn(t, g.ID, shards, g.CatchUp), r.check(t, g.ID, shards),
			r.served(t, g.ID))
	}
	if err != nil {
		return fmt.Errorf("gone on: %w", err)
	}
	return r.back(t, g.ID, shards, before)
}

// buildFull lets a candidate read all there is.
func (r *rebuilding) buildFull(
	t *testing.T, generation, shards int32, catchUp *stream.CatchUp,
) error {
	for shard := range shards {
		deltas, err := r.run(t, generation, shard, shards, r.seen.Lanes, func(cfg *reconcile.Config) {
			cfg.CatchUp, cfg.UntilEnd = catchUp, true
		})
		if err != nil {
			return fmt.Errorf("build shard %d: %w", shard, err)
		}
		r.count(deltas)
		r.remember(generation, slices.DeleteFunc(deltas, func(d *stream.Delta) bool {
			return d.WatermarkBefore < catchUp.Watermark
		}))
	}
	return nil
}

// promoted checks what a promotion has left.
func (r *rebuilding) promoted(t *testing.T, generation, shards int32) error {
	err := errors.Join(r.served(t, generation), r.check(t, generation, shards),
		r.whole(t, r.base, r.shards))
	if err != nil {
		return err
	}
	open, err := r.store.Corrections(t.Context(), r.base)
	if err != nil {
		return err
	}
	for i := range open {
		if at := r.catchUp.Of(open[i].Partition); !beyond(open[i].Position, at.To) {
			return fmt.Errorf("%+v is still open, the candidate has read up to %s", open[i], at.To)
		}
	}
	return nil
}

// back lets the base serve again, with what it had.
func (r *rebuilding) back(t *testing.T, generation, shards int32, before []string) error {
	if _, err := r.store.Promote(t.Context(), r.serve(r.base)); err != nil {
		return err
	}
	now, err := active(t.Context(), r.db, r.base)
	if err == nil && !slices.Equal(now, before) {
		err = fmt.Errorf("served again are\n%q\nbefore\n%q", now, before)
	}
	return errors.Join(err, r.served(t, r.base), r.whole(t, r.base, r.shards),
		r.whole(t, generation, shards))
}
