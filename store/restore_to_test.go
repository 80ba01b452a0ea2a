package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// TestRestoreToPutsAShardBack: a start names the row that is missing, a restore writes it again.
func TestRestoreToPutsAShardBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := newStory()
	var want string
	for epoch := range 5 {
		commit(t, b.shard, s.next())
		if epoch == 2 {
			want = b.standing(t)
		}
	}
	b.exec(t, "delete from tally.shard where shard = 0")
	_, err := b.Take(t.Context(), b.generation, 0, "host/1")
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "--to-epoch 5 --shard 0") {
		t.Errorf("take a shard without its row: %v", err)
	}
	if err := b.RestoreTo(t.Context(), b.generation, 0, "host/1", 3); err != nil {
		t.Fatal(err)
	}
	if b.standing(t) != want {
		t.Error("the state is not that of epoch 3")
	}
	b.wantWhole(t, true)
	state := restore(t, b.take(t, b.Store))
	if state.Epoch != 6 || len(state.Replays) != 2 || len(state.Damage) != 0 {
		t.Errorf("the next start finds %+v", state)
	}
	err = b.RestoreTo(t.Context(), b.generation, 0, "host/2", 3)
	if !errors.Is(err, store.ErrHeld) {
		t.Errorf("restore a shard that a worker holds: %v, want ErrHeld", err)
	}
}
