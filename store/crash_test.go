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
	// A COMMIT that was answered has no way left to fail.
	answered := statement == "commit" && done
	if b.seen++; b.seen-1 != b.at || answered && b.how == refused {
		return nil
	}
	b.where = fmt.Sprintf("before %s", statement)
	if done {
		b.where = fmt.Sprintf("after %s", statement)
	}
	if b.how == refused {
		return errRefused
	}
	b.cancel()
	if answered {
		return nil
	}
	return ctx.Err()
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
