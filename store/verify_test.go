package store_test

import (
	"os"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// TestNoFalseAlarm restarts many times, with a commit between.
func TestNoFalseAlarm(t *testing.T) {
	t.Parallel()
	restarts := 250
	if os.Getenv("TALLY_LONG") != "" {
		restarts = 1000
	}
	b := setup(t)
	h, s := b.shard, newStory()
	for i := range restarts {
		state, err := h.Restore(t.Context(), store.Depth(i%2),
			func(store.State) store.Loader { return (&collector{}).load })
		if err == nil {
			err = h.CheckRest(t.Context())
		}
		if err != nil {
			t.Fatalf("restart %d: %v", i, err)
		}
		if len(state.Damage) > 0 || state.Epoch != s.epoch {
			t.Fatalf("restart %d: %+v, want epoch %d", i, state, s.epoch)
		}
		if i%97 == 0 {
			b.wantWhole(t, i%2 == 1)
		}
		if t.Failed() {
			return
		}
		commit(t, h, s.next())
		h = b.take(t, b.Store)
	}
	b.wantWhole(t, true)
}
