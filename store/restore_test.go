package store_test

import (
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// collector is a loader that keeps what it gets.
type collector struct {
	stream.Found
	gone [2][]string
}

func (c *collector) LoadRows(rows []stream.BufferRow) { c.Rows = append(c.Rows, rows...) }

func (c *collector) LoadResults(results []stream.Result) {
	c.Results = append(c.Results, results...)
}

func (c *collector) Gone() [2][]string { return c.gone }

func (c *collector) LoadGone(results []stream.Result) { c.LoadResults(results) }

// TestRestoreOfWhatWasWritten reads back a shard that nobody touched.
func TestRestoreOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.shard
	for epoch := range int64(7) {
		var found collector
		state, err := h.Restore(t.Context(), func(store.State) store.Loader { return &found })
		if err != nil {
			t.Fatal(err)
		}
		want, err := h.Load(t.Context(), state.Watermark)
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, found.Rows, want.Rows...)
		wantResults(t, found.Results, want.Results...)
		if state.Epoch != epoch || len(state.Damage) != 0 || len(state.Replays) != 0 {
			t.Errorf("restored %+v, want epoch %d", state, epoch)
		}
		report, err := b.Verify(t.Context(), b.generation, 0, false)
		if err != nil || len(report.Damage) != 0 {
			t.Errorf("%v %v", report, err)
		}
		commit(t, h, busyDelta(epoch+1))
		h = b.take(t, b.Store)
	}
}
