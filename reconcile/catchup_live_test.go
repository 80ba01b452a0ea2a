package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestCandidateGoesOnLive: what a candidate reads after it was released is judged as by the model,
// which is given the epochs that it ran.
func TestCandidateGoesOnLive(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total reaped
	for seed := range oracle.Seeds(t, 600, 75) {
		c, err := newCandidacy(t, db, st, seed, 1, 1)
		if err == nil {
			err = c.goOn(t)
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(c.reaped)
	}
	t.Logf("%+v", total)
	if total.Live == 0 || total.Released == 0 {
		t.Errorf("some of it was never tried: %+v", total)
	}
}

func (c *candidacy) goOn(t *testing.T) error {
	c.wide = true
	generation := c.register(t, "candidate", 1)
	deltas, err := c.run(t, generation, 0, 1, c.history.Lanes, func(cfg *reconcile.Config) {
		cfg.CatchUp, cfg.UntilEnd = &c.catchUp, true
	})
	if err != nil {
		return err
	}
	c.count(deltas)
	model := oracle.NewModel(c.history.Rule, c.history.Partitions())
	for _, d := range deltas {
		if got, want := d.Counts, model.Step(c.ran(d)).Counts; got != want {
			return fmt.Errorf("epoch %d counts\n%+v, want\n%+v", d.Epoch, got, want)
		}
	}
	got, err := active(t.Context(), c.db, generation)
	if want := model.Active(); err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("active rows are\n%q\nwant\n%q", got, want)
	}
	return err
}

// ran gives the epoch that a candidate ran.
func (c *candidacy) ran(d *stream.Delta) oracle.Epoch {
	e := oracle.Epoch{Clock: d.Clock}
	switch {
	case d.WatermarkBefore >= c.catchUp.Watermark:
	case d.WatermarkAfter > d.WatermarkBefore:
		e.Release = &c.catchUp
	default:
		e.Held = &c.catchUp
	}
	for i, p := range d.Progress {
		from, _ := strconv.Atoi(p.From)
		to, _ := strconv.Atoi(p.To)
		e.Slices = append(e.Slices, oracle.Slice{
			Partition: p.Partition, Records: c.history.Lanes[i].Records[from:to],
		})
	}
	return e
}

// TestCandidateIsUndoneAndReplayed damages a candidate between its runs, and once more when it is
// built the epoch that released it: what was held and released must be replayed with the same outputs.
func TestCandidateIsUndoneAndReplayed(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	for seed := range oracle.Seeds(t, 400, 50) {
		c, err := newCandidacy(t, db, st, seed, 1, 1)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// What an epoch changed is damaged, not what it says of itself, so that it can be replayed.
		damage := func(generation int32, epoch string, args ...any) error {
			_, err := db.Pool.Exec(t.Context(), `
				delete from tally.match_transition where ctid = (
					select ctid from tally.match_transition
					where generation_id = $1 and epoch > 1 and epoch = (`+epoch+`) limit 1)`,
				append([]any{generation}, args...)...)
			return err
		}
		c.stops = 6
		c.onStop = func(generation int32) error {
			return damage(generation, `select max(epoch) - $2::integer from tally.epoch
				where generation_id = $1`, c.rng.IntN(6))
		}
		err = c.build(t, 1)
		if err == nil {
			c.stops = 0
			err = errors.Join(
				damage(c.register(t, "candidate", 1), `select max(epoch) from tally.epoch
					where generation_id = $1 and watermark_after > watermark_before`),
				c.build(t, 1))
		}
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
	}
	var held, released, diverged int
	err := db.Pool.QueryRow(t.Context(), `
		select count(replays) filter (where watermark_after = watermark_before),
			count(replays) filter (where watermark_after > watermark_before),
			count(replay_divergence) from tally.epoch`).Scan(&held, &released, &diverged)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d held and %d released epochs were replayed", held, released)
	if diverged > 0 {
		t.Errorf("%d replays diverged", diverged)
	}
	if held == 0 || released == 0 {
		t.Error("some of it was never replayed")
	}
}
