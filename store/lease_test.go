package store_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/store"
)

// openLease opens a store whose leases last that long.
func (b *bundle) openLease(t *testing.T, leaseFor time.Duration) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{
		ConnString: b.db.URL, Schema: b.db.Schema, MaxConns: 4, LeaseFor: leaseFor,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// lease gives what the list says of shard 0.
func (b *bundle) lease(t *testing.T) store.Lease {
	t.Helper()
	list, err := b.Leases(t.Context(), b.generation)
	if err != nil || len(list) != 2 {
		t.Fatalf("leases %+v, %v", list, err)
	}
	return list[0]
}

func TestNoLateCommitIsAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1))
	accepted := 0
	late := b.shard
	for range 1000 {
		holder := b.take(t, b.Store)
		err := late.Commit(t.Context(), late.Encode(delta(2)))
		switch {
		case err == nil:
			accepted++
		case !errors.Is(err, store.ErrFenced):
			t.Fatal(err)
		}
		late = holder
	}
	if accepted != 0 {
		t.Errorf("%d of 1000 late commits were accepted", accepted)
	}
	commit(t, late, delta(2))
}

func TestTheLoserChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	loser := b.shard
	holder := b.take(t, b.Store)
	const sql = "select to_jsonb(s) - 'none' from tally.shard s where shard = 0"
	row := func() (text string) {
		if err := b.db.Pool.QueryRow(t.Context(), sql).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := row()
	if by, err := loser.Extend(t.Context()); by != "" || !errors.Is(err, store.ErrFenced) {
		t.Errorf("a heartbeat of the loser: %q, %v, want ErrFenced", by, err)
	}
	for _, outcome := range []string{"stopped", store.HandedOver} {
		if err := loser.Leave(t.Context(), outcome); err != nil {
			t.Fatal(err)
		}
	}
	if after := row(); after != before {
		t.Errorf("the loser changed the shard:\n got %s\nwant %s", after, before)
	}
	if _, err := holder.Extend(t.Context()); err != nil {
		t.Error(err)
	}
	commit(t, holder, delta(1))
}

func TestTakeOverWaitsForTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	short := b.openLease(t, 300*time.Millisecond)
	dead := b.take(t, short)
	taken := 0
	for deadline := time.Now().Add(20 * time.Second); taken == 0; {
		var live bool
		row := b.db.Pool.QueryRow(t.Context(),
			"select lease_until > clock_timestamp() from tally.shard where shard = 0")
		_, err := b.Take(t.Context(), b.generation, 0, "host/2")
		var held *store.HeldError
		switch {
		case err == nil:
			taken++
		case !errors.As(err, &held) || !errors.Is(err, store.ErrHeld):
			t.Fatal(err)
		case held.Worker != "host/1" && held.Worker != "":
			t.Errorf("the lease belongs to %q", held.Worker)
		case time.Now().After(deadline):
			t.Fatal("a lease that is over is not given to another")
		}
		if err := row.Scan(&live); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.lease(t); got.Worker != "host/2" || !got.Running || got.For > 10*time.Second ||
		got.For < time.Second {
		t.Errorf("after the take-over the lease is %+v", got)
	}
	if err := dead.Commit(t.Context(), dead.Encode(delta(1))); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a commit after the lease: %v, want ErrFenced", err)
	}
}

// TestALeaseThatRanOutIsStillItsHolders: nobody else wanted the shard, so nothing is lost.
func TestALeaseThatRanOutIsStillItsHolders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.expire(t)
	if got := b.lease(t); !got.Free() {
		t.Fatalf("the lease is %+v, want a free one", got)
	}
	commit(t, b.shard, delta(1))
	if got := b.lease(t); got.Worker != "host/1" || got.For < 5*time.Second {
		t.Errorf("after a commit the lease is %+v", got)
	}
	b.expire(t)
	if _, err := b.shard.Extend(t.Context()); err != nil {
		t.Error(err)
	}
	if got := b.lease(t); got.Worker != "host/1" || got.For < 5*time.Second {
		t.Errorf("after a heartbeat the lease is %+v", got)
	}
}

// TestAHeartbeatDoesNotWaitForACommit: it shares the row with the epoch's transaction.
func TestAHeartbeatDoesNotWaitForACommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from tally.shard for update"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.shard.Extend(t.Context()); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestHandOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	ask := func(worker, holder string) {
		t.Helper()
		if err := b.Request(ctx, b.generation, 0, worker, holder); err != nil {
			t.Fatal(err)
		}
	}
	ask("host/2", "host/9") // not the holder
	ask("host/2", "host/1")
	ask("host/3", "host/1") // too late
	by, err := b.shard.Extend(ctx)
	if by != "host/2" || err != nil {
		t.Fatalf("the holder is asked by %q, %v, want host/2", by, err)
	}
	commit(t, b.shard, delta(1))
	if err := b.shard.Leave(ctx, store.HandedOver); err != nil {
		t.Fatal(err)
	}
	if got := b.lease(t); got.Worker != "host/2" || got.Running || got.RequestedBy != "" {
		t.Errorf("handed over the lease is %+v", got)
	}
	if _, err := b.Take(ctx, b.generation, 0, "host/3"); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a third worker takes what was handed to another: %v, want ErrHeld", err)
	}
	h, err := b.Take(ctx, b.generation, 0, "host/2")
	if err != nil || h.Epoch != 1 {
		t.Fatalf("the worker that asked: %+v, %v", h, err)
	}
	if _, err := b.Take(ctx, b.generation, 0, "host/2"); !errors.Is(err, store.ErrHeld) {
		t.Errorf("it takes the shard twice: %v, want ErrHeld", err)
	}
	if err := h.Leave(ctx, store.HandedOver); err != nil { // nobody asked
		t.Fatal(err)
	}
	if got := b.lease(t); !got.Free() {
		t.Errorf("handed over to nobody the lease is %+v", got)
	}
}

// TestTakeSurvivesLostConnections cuts at message 0, 1, 2 …: an attempt that does not know whether
// it has the shard is not kept out by itself.
func TestTakeSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, when := range []cut{beforeSend, beforeReply} {
		for k, hits := 0, 1; hits > 0; k++ {
			var f fault
			s := open(t, b.db, f.configure)
			other := &bundle{Store: s, db: b.db}
			other.generation = other.register(t, fmt.Sprint(when, k), 2)
			f.arm(when, k, 1, 0)
			h, err := s.Take(t.Context(), other.generation, 0, "w")
			hits = f.disarm()
			if err != nil {
				t.Fatalf("cut %s at message %d: %v", when, k, err)
			}
			commit(t, h, delta(1))
			s.Close()
		}
	}
}

func TestOneOfManyTakesAFreeLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		b.expire(t)
		var group sync.WaitGroup
		taken := make(chan *store.Shard, 8)
		for i := range 8 {
			group.Go(func() {
				h, err := b.Take(t.Context(), b.generation, 0, fmt.Sprint("w", i))
				if err == nil {
					taken <- h
				} else if !errors.Is(err, store.ErrHeld) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(taken) != 1 {
			t.Fatalf("%d workers took one lease", len(taken))
		}
	}
}

// TestNoClockOfTheWorker: a worker whose clock is wrong by an hour does nothing else, because the
// code that takes, keeps and shares leases never reads one. It measures pauses only.
func TestNoClockOfTheWorker(t *testing.T) {
	t.Parallel()
	files := []string{
		"../reconcile/lease.go", "../reconcile/leases.go", "../reconcile/fleet.go",
		"../reconcile/balance.go",
	}
	here, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range here {
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
			t.Fatal(err)
		}
		for _, clock := range []string{"time.Now(", "time.Since(", "time.Until("} {
			if strings.Contains(string(text), clock) && name != "tracer.go" {
				t.Errorf("%s reads the worker's clock: %s", name, clock)
			}
		}
	}
}
