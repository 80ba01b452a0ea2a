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

// TestRandomRuleChanges: a rule with a narrower window is built beside the one that serves, under
// another version. All of its identities are new, it explains every difference, and what served
// before can serve again.
func TestRandomRuleChanges(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total rebuilds
	histories := 0
	for seed := range oracle.Seeds(t, 2000, 400) {
		r, err := newRebuilding(t, db, st, seed, int32(1+seed%3))
		if err == nil {
			err = r.changeRule(t, int32(1+seed/3%3))
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(r.done)
		histories++
	}
	t.Logf("%+v", total)
	if histories > 1 && (total.Changes == 0 || total.Compared == 0) {
		t.Errorf("some of it was never tried: %+v", total)
	}
}

func (r *rebuilding) changeRule(t *testing.T, shards int32) error {
	if err := r.served(t, r.base); err != nil {
		return fmt.Errorf("at first: %w", err)
	}
	before, err := active(t.Context(), r.db, r.base)
	if err != nil {
		return err
	}
	rule := &r.history.Rule
	rule.Version, rule.Before, rule.After = "v2", rule.Before/3, rule.After/3
	g, err := r.begin(t, *rule, shards, stream.Range{})
	if err == nil {
		err = r.buildFull(t, g.ID, shards, &r.catchUp)
	}
	if err == nil {
		err = r.promote(t, g)
	}
	if err == nil {
		err = r.promoted(t, g.ID, shards)
	}
	if err != nil {
		return err
	}
	same, err := lines(t.Context(), r.db, `select encode(match_id, 'hex') from tally.match
		where generation_id = $1 and status in ('matched', 'provisional', 'final')
		intersect select encode(match_id, 'hex') from tally.match where generation_id = $2`,
		g.ID, r.base)
	if err != nil || len(same) > 0 {
		return errors.Join(err, fmt.Errorf("identities of both rules: %q", same))
	}
	return r.back(t, g.ID, shards, before)
}

// TestRandomRebuildsAreUndone: where a shard has to go back behind the epoch of a rebuild, it has
// the results and the open corrections that it had before, and the interval can be merged again.
func TestRandomRebuildsAreUndone(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total rebuilds
	histories := 0
	undone := [2]int{}
	for seed := range oracle.Seeds(t, 2000, 60) {
		r, err := newRebuilding(t, db, st, seed, 1)
		if err == nil && seed%3 == 0 {
			err = r.undoFull(t, &undone[0])
		} else if err == nil {
			err = r.undoInterval(t, &undone[1])
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(r.done)
		histories++
	}
	t.Logf("%v undone, %+v", undone, total)
	if histories > 1 && (undone[0] == 0 || undone[1] == 0 || total.Settled == 0) {
		t.Errorf("some of it was never tried: %v %+v", undone, total)
	}
}

func (r *rebuilding) undoFull(t *testing.T, undone *int) error {
	g, err := r.begin(t, r.history.Rule, 1, stream.Range{})
	if err == nil {
		err = r.buildFull(t, g.ID, 1, &r.catchUp)
	}
	if err == nil {
		err = r.promote(t, g)
	}
	if err == nil {
		err = r.served(t, g.ID)
	}
	if err != nil {
		return err
	}
	went, err := r.undo(t, g.ID)
	if err != nil || !went {
		return err
	}
	*undone++
	err = errors.Join(r.served(t, g.ID), r.check(t, g.ID, 1), r.whole(t, r.base, 1))
	if err == nil && !r.sealed {
		err = errors.Join(r.goOn(t, g.ID, 1, g.CatchUp), r.served(t, g.ID), r.check(t, g.ID, 1))
	}
	return err
}

func (r *rebuilding) undoInterval(t *testing.T, undone *int) error {
	within, err := r.someInterval(t)
	if err != nil || within == (stream.Range{}) {
		return err
	}
	before, open, err := r.stands(t)
	if err != nil {
		return err
	}
	if err := r.settle(t, within); err != nil {
		return err
	}
	merged, left, err := r.stands(t)
	if err != nil {
		return err
	}
	went, err := r.undo(t, r.base)
	if err != nil || !went {
		return err
	}
	*undone++
	if err := r.is(t, before, open); err != nil {
		return fmt.Errorf("undone: %w", err)
	}
	if err := r.settle(t, within); err != nil {
		return err
	}
	if err := r.is(t, merged, left); err != nil {
		return fmt.Errorf("merged again: %w", err)
	}
	return nil
}

// settle builds an interval and merges it.
func (r *rebuilding) settle(t *testing.T, within stream.Range) error {
	g, err := r.begin(t, r.history.Rule, 1, within)
	if err != nil {
		return err
	}
	open, err := r.store.Corrections(t.Context(), r.base)
	if err == nil {
		open = reconcile.LeftOpen(configOf(r.history.Rule, r.rng).Rule, within, open)
		err = r.buildInterval(t, g, open)
	}
	if err == nil {
		err = r.promote(t, g)
	}
	return err
}

// stands gives the active rows of the base and its open corrections.
func (r *rebuilding) stands(t *testing.T) ([]string, []store.OpenCorrection, error) {
	rows, err := active(t.Context(), r.db, r.base)
	if err != nil {
		return nil, nil, err
	}
	open, err := r.store.Corrections(t.Context(), r.base)
	return rows, open, err
}

func (r *rebuilding) is(t *testing.T, rows []string, open []store.OpenCorrection) error {
	nowRows, nowOpen, err := r.stands(t)
	switch {
	case err != nil:
		return err
	case !slices.Equal(nowRows, rows):
		return fmt.Errorf("active are\n%q\nwant\n%q", nowRows, rows)
	case !slices.Equal(nowOpen, open):
		return fmt.Errorf("open are\n%+v\nwant\n%+v", nowOpen, open)
	}
	return errors.Join(r.served(t, r.base), r.check(t, r.base, 1))
}

// undo damages what a rebuild has changed in a generation and lets the next attempt find it. It
// tells whether there was something.
func (r *rebuilding) undo(t *testing.T, generation int32) (bool, error) {
	tag, err := r.db.Pool.Exec(t.Context(), `
		update tally.match_transition set reason = 'forged' where ctid = (
			select t.ctid from tally.match_transition t
			join tally.epoch e using (generation_id, shard, epoch)
			where generation_id = $1 and kind = 'rebuild' and e.status = 'committed' limit 1)`,
		generation)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = r.run(t, generation, 0, 1, r.seen.Lanes, func(cfg *reconcile.Config) {
		cfg.UntilEnd, cfg.Seal = true, r.sealed
	})
	if err != nil {
		return false, fmt.Errorf("go back in generation %d: %w", generation, err)
	}
	return true, nil
}
