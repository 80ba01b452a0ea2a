package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// broken is how an operation is broken at one of its statements.
type broken string

const (
	refused   broken = "the statement fails"
	cancelled broken = "the context is cancelled"
)

var errRefused = errors.New("refused by the test")

// breaker breaks at the k-th place: before the first statement, after it, before the second, ….
type breaker struct {
	how    broken
	at     int
	cancel context.CancelFunc

	mu    sync.Mutex
	armed bool
	seen  int
	where string
}

func (b *breaker) onStep(ctx context.Context, statement string, done bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.armed {
		return nil
	}
	if b.seen++; b.seen-1 != b.at {
		return nil
	}
	b.where = fmt.Sprintf("before %s", statement)
	if done {
		b.where = fmt.Sprintf("after %s", statement)
	}
	// A COMMIT that was answered has no way left to fail.
	answered := statement == "commit" && done
	if b.how == cancelled {
		b.cancel()
	}
	switch {
	case answered:
		return nil
	case b.how == cancelled:
		return ctx.Err()
	}
	return errRefused
}

// arm makes the next operation break; the context is for it. disarm tells where it broke, empty for
// nowhere.
func (b *breaker) arm(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed, b.cancel = true, cancel
	return ctx
}

func (b *breaker) disarm() (where string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = false
	return b.where
}

// breakEverywhere runs an operation again and again, broken at place 0, 1, 2 … until it runs
// through; each in every way. try gets a store of its own and a name, and tells where it broke.
func breakEverywhere(
	t *testing.T, atLeast int, try func(t *testing.T, b *bundle, s *store.Store, br *breaker, name string),
) {
	for _, how := range []broken{refused, cancelled} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			k := 0
			for ; ; k++ {
				br := &breaker{how: how, at: k}
				s, err := store.Open(t.Context(), store.Config{
					ConnString: b.db.URL, Schema: b.db.Schema, MaxConns: 4, OnStep: br.onStep,
				})
				if err != nil {
					t.Fatal(err)
				}
				try(t, b, s, br, fmt.Sprint("broken at ", k))
				s.Close()
				if br.where == "" {
					break
				}
			}
			t.Logf("broken at %d places", k)
			if k < atLeast {
				t.Errorf("broken at %d places, want at least %d", k, atLeast)
			}
		})
	}
}

// TestCommitBrokenAtEveryStatement: whatever breaks, the epoch is there wholly or not at all, and
// the same epoch committed again is there once.
func TestCommitBrokenAtEveryStatement(t *testing.T) {
	t.Parallel()
	const statements = 14 // begin, settings, fence, 5 on tables, 3 COPYs, manifest, notify, commit
	breakEverywhere(t, 2*statements-1, func(
		t *testing.T, b *bundle, s *store.Store, br *breaker, name string,
	) {
		other := &bundle{Store: s, db: b.db}
		other.generation = other.register(t, name, 2)
		h := other.take(t, s)
		commit(t, h, busyDelta(1))
		before := other.dump(t)
		e := h.Encode(busyDelta(2))
		err := h.Commit(br.arm(t), e)
		where := br.disarm()
		if after := other.dump(t); err != nil && where != "" && after != before {
			t.Fatalf("broken %s: %v, and something of the epoch is there:\n%s", where, err, after)
		}
		if (err == nil) != (where == "" || where == "after commit") {
			t.Fatalf("broken %s: %v", where, err)
		}
		if err != nil {
			commit2(t, h, e, where)
		}
		commit(t, h, busyDelta(3))
		commit(t, b.takeNew(t, name+" whole"), busyDelta(1), busyDelta(2), busyDelta(3))
		wantSame(t, other.dump(t), b.dumpOf(t, b.generation))
	})
}

// commit2 commits an epoch again that was broken.
func commit2(t *testing.T, h *store.Shard, e *store.Epoch, where string) {
	t.Helper()
	if err := h.Commit(t.Context(), e); err != nil {
		t.Fatalf("commit again what was broken %s: %v", where, err)
	}
}

// takeNew registers another reconciliation and takes its shard.
func (b *bundle) takeNew(t *testing.T, name string) *store.Shard {
	t.Helper()
	b.generation = b.register(t, name, 2)
	return b.take(t, b.Store)
}

// TestRestoreBrokenAtEveryStatement: whatever breaks while a shard goes back, the next start finds
// it where it stood or where it was to go, and goes on from there.
func TestRestoreBrokenAtEveryStatement(t *testing.T) {
	t.Parallel()
	const statements = 15
	breakEverywhere(t, 2*statements-1, func(
		t *testing.T, b *bundle, s *store.Store, br *breaker, name string,
	) {
		other := &bundle{Store: s, db: b.db}
		other.generation = other.register(t, name, 2)
		h := other.take(t, s)
		commit(t, h, busyDelta(1), busyDelta(2))
		want := other.standing(t)
		commit(t, h, busyDelta(3))
		if other.exec(t, `update tally.buffer set key = 'by hand'
			where generation_id = $1 and id = 'l3'`, other.generation) != 1 {
			t.Fatal("nothing was damaged")
		}
		damaged := other.standing(t)
		_, err := h.Restore(br.arm(t), store.Quick, unloaded)
		where := br.disarm()
		// After the COMMIT it verifies again, which a cancelled context ends.
		if (err == nil) != (where == "") && where != "after commit" {
			t.Fatalf("broken %s: %v", where, err)
		}
		if got := other.standing(t); got != want && (err == nil || got != damaged) {
			t.Fatalf("broken %s: the shard stands at\n%s\nwant\n%s", where, got, want)
		}
		if err := h.Leave(t.Context(), "broken"); err != nil {
			t.Fatal(err)
		}
		h = other.take(t, s)
		state := restore(t, h)
		if got := other.standing(t); got != want || len(state.Replays) != 1 {
			t.Fatalf("broken %s: the next start replays %d epochs, and stands at\n%s\nwant\n%s", where,
				len(state.Replays), got, want)
		}
		d := busyDelta(3)
		shift(d, state.Epoch+1)
		e := h.Encode(d)
		if e.Replays(3, state.Replays[0].Output) {
			t.Errorf("broken %s: the replay diverged", where)
		}
		if err := h.Commit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		other.wantWhole(t, true)
	})
}

// TestPurgeBrokenAtEveryStatement: whatever breaks, no row goes that a retained epoch needs, and the
// next purge takes the rest.
func TestPurgeBrokenAtEveryStatement(t *testing.T) {
	t.Parallel()
	const statements = 5 // begin, lock, mark, commit, and at least one step
	breakEverywhere(t, 2*statements-1, func(
		t *testing.T, b *bundle, s *store.Store, br *breaker, name string,
	) {
		other := &bundle{Store: s, db: b.db}
		other.generation = other.register(t, name, 2)
		h := other.take(t, s)
		for epoch := range int64(5) {
			commit(t, h, passing(epoch+1))
		}
		retain := store.Retention{Epochs: 2, For: 1 << 60}
		p, err := s.Purge(t.Context(), other.generation, 0, retain)
		if err != nil || p == nil {
			t.Fatalf("nothing to purge: %v", err)
		}
		ctx := br.arm(t)
		more, err := p.Begin(ctx)
		// The table is shared by all that were tried, so the later ones take more steps than these.
		for step := 0; step < 2 && more && err == nil; step++ {
			_, more, err = p.Step(ctx)
		}
		where := br.disarm()
		if err != nil && where == "" {
			t.Fatal(err)
		}
		other.wantRestorable(t, other.generation, 0, p.Epoch, false)
		other.purge(t, s, retain)
		other.wantRestorable(t, other.generation, 0, p.Epoch, true)
		commit(t, h, passing(6))
		other.wantWhole(t, false)
	})
}
