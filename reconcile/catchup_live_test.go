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
	for seed := range oracle.Seeds(t, 600, 30) {
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

// TestCandidateIsUndoneAndReplayed damages a candidate between its runs: what it held and released
// must be replayed with the same outputs.
func TestCandidateIsUndoneAndReplayed(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	undone, replayed := 0, 0
	for seed := range oracle.Seeds(t, 400, 20) {
		c, err := newCandidacy(t, db, st, seed, 1, 1)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		c.onStop = func(generation int32) error {
			tag, err := db.Pool.Exec(t.Context(), `
				update tally.epoch set read = read + 1, accepted = accepted + 1
				where generation_id = $1 and epoch > 2 and epoch = (
					select max(epoch) - floor(random() * 6) from tally.epoch where generation_id = $1)`,
				generation)
			undone += int(tag.RowsAffected())
			return err
		}
		if err := c.build(t, 1); err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		var again, diverged int
		err = db.Pool.QueryRow(t.Context(),
			"select count(replays), count(replay_divergence) from tally.epoch").
			Scan(&again, &diverged)
		if err != nil || diverged > 0 {
			t.Fatalf("seed %d: %d replays diverged (%v)", seed, diverged, err)
		}
		replayed = again
	}
	if t.Logf("%d epochs damaged, %d replayed", undone, replayed); replayed == 0 {
		t.Error("nothing was replayed")
	}
}
