package store_test

import (
	"testing"
)

// TestRestoreOfWhatWasWritten reads back a shard that nobody touched.
func TestRestoreOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.shard
	for epoch := range int64(7) {
		state, found, err := h.Restore(t.Context(), 1000)
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
