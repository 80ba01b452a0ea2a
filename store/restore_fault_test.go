package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// TestRestoreSurvivesLostConnections cuts the connection at message 0, 1, 2 … of a start that has to
// go back, until one runs through uncut. Each must end in the same state.
func TestRestoreSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when  cut
		times int
	}{{beforeSend, 1}, {beforeReply, 1}, {afterReply, 1}, {beforeReply, 3}} {
		t.Run(fmt.Sprintf("%s, %d times", c.when, c.times), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			k, struck := 0, true
			for ; struck && !t.Failed(); k++ {
				struck = b.surviveRestoring(t, c.when, k, c.times)
			}
			if t.Logf("%d messages", k-1); k < 15 {
				t.Error("the faults did not do what they should")
			}
		})
	}
}

// surviveRestoring tells whether there was a message k.
func (b *bundle) surviveRestoring(t *testing.T, when cut, k, times int) bool {
	var f fault
	s := open(t, b.db, f.configure)
	defer s.Close()
	o := &bundle{Store: s, db: b.db}
	o.generation = o.register(t, fmt.Sprint("run ", k), 2)
	h := o.take(t, s)
	story := newStory()
	var want string
	for epoch := range 7 {
		commit(t, h, story.next())
		if epoch == 4 {
			want = o.standing(t)
		}
	}
	h = o.take(t, s)
	damaged := o.exec(t, `update tally.buffer set key = key || 'x'
		where generation_id = $1 and id = 'l6'`, o.generation)
	if damaged != 1 {
		t.Fatalf("%d rows damaged", damaged)
	}
	f.arm(when, k, times, 2)
	state, err := h.Restore(t.Context(), store.Quick, unloaded)
	hits := f.disarm()
	if err != nil {
		t.Fatalf("cut at %d: %v", k, err)
	}
	if state.RestoredTo != 5 || state.RestoredFrom != 7 || state.Epoch != 8 || len(state.Replays) != 2 {
		t.Errorf("cut at %d: restored %+v", k, state)
	}
	if o.standing(t) != want {
		t.Errorf("cut at %d: the state is not that of epoch 5", k)
	}
	o.wantWhole(t, false)
	var restores int
	err = b.db.Pool.QueryRow(t.Context(), `select count(*) from tally.epoch
		where generation_id = $1 and kind = 'restore'`, o.generation).Scan(&restores)
	if err != nil || restores != 1 {
		t.Errorf("cut at %d: %d steps back, %v", k, restores, err)
	}
	return hits > 0
}

// TestRestoreIsFenced: a worker that lost its shard while it verified writes nothing.
func TestRestoreIsFenced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := newStory()
	for range 4 {
		commit(t, b.shard, s.next())
	}
	h := b.take(t, b.Store)
	b.take(t, b.Store)
	b.exec(t, "update tally.shard set watermark = watermark + interval '1 us'")
	before := b.dump(t)
	if _, err := h.Restore(t.Context(), store.Quick, unloaded); !errors.Is(err, store.ErrFenced) {
		t.Errorf("restore after the shard was taken: %v, want ErrFenced", err)
	}
	wantSame(t, b.dump(t), before)
}
