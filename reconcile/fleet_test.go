package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

const fleetShards = 8

// countingSource counts the records that a process reads of a lane.
type countingSource struct {
	laneSource
	given *atomic.Int64
}

func (s *countingSource) Read(ctx context.Context, limit int) ([]stream.Record, bool, error) {
	records, atEnd, err := s.laneSource.Read(ctx, limit)
	s.given.Add(int64(len(records)))
	return records, atEnd, err
}

// fleetTest is a generation of several shards over one history.
type fleetTest struct {
	db         *testenv.Database
	store      *store.Store
	history    *oracle.History
	generation int32
	leaseFor   time.Duration
}

func newFleetTest(t *testing.T, seed uint64, leaseFor time.Duration) *fleetTest {
	t.Helper()
	f := &fleetTest{
		db: testenv.DB(t), history: oracle.Generate(seed, oracle.Confluent), leaseFor: leaseFor,
	}
	var err error
	f.store, err = store.Open(t.Context(), store.Config{
		ConnString: f.db.URL, Schema: f.db.Schema, LeaseFor: leaseFor, MaxConns: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.store.Close)
	f.generation, err = f.store.Register(t.Context(), store.Registration{
		Name: "fleet", RuleVersion: f.history.Rule.Version, Rule: []byte(`{}`), Shards: fleetShards,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// config is that of a worker on all shards, and how many records its process has read.
func (f *fleetTest) config(t *testing.T, worker string) (reconcile.FleetConfig, *atomic.Int64) {
	rng := rand.New(rand.NewPCG(f.history.Seed, 3))
	cfg := reconcile.FleetConfig{
		Loop: reconcile.Config{
			Join:      configOf(f.history.Rule, rng),
			Logger:    slog.New(slog.NewTextHandler(t.Output(), nil)).With("worker", worker),
			LeaseFor:  f.leaseFor,
			MaxEvents: 20, MaxDelay: time.Millisecond, UntilEnd: true, Seal: f.history.Sealed,
		},
		Of: fleetShards, Worker: worker,
		Leases: reconcile.StoreLeases(f.store, f.generation, worker),
	}
	for shard := range int32(fleetShards) {
		cfg.Shards = append(cfg.Shards, shard)
	}
	var given atomic.Int64
	for _, lane := range f.history.Lanes {
		source := &countingSource{laneSource{lane: lane}, &given}
		cfg.Loop.Sources = append(cfg.Loop.Sources, source)
	}
	return cfg, &given
}

// equalsBatch compares the active rows with one SQL join over the raw events.
func (f *fleetTest) equalsBatch(t *testing.T) {
	t.Helper()
	tx, err := f.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := oracle.Batch(t.Context(), tx, f.history, oracle.BatchSQL{
		RawEvent: queries.Torture("raw_event"), Join: queries.Torture("batch"),
	})
	if err := errors.Join(err, tx.Rollback(t.Context())); err != nil {
		t.Fatal(err)
	}
	got, err := active(t.Context(), f.db, f.generation)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("seed %d: active rows are\n%q\nwant\n%q", f.history.Seed, got, want)
	}
}

// waitForLoads waits until workers have so many shards each.
func (f *fleetTest) waitForLoads(t *testing.T, want map[string]int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		leases, err := f.store.Leases(t.Context(), f.generation)
		if err != nil {
			t.Fatal(err)
		}
		loads := map[string]int{}
		for _, l := range leases {
			if l.Running {
				loads[l.Worker]++
			}
		}
		if fmt.Sprint(loads) == fmt.Sprint(want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the shards are with %v, want %v", loads, want)
		}
	}
}

// outcomes counts how attempts ended.
func (f *fleetTest) outcomes(t *testing.T) map[string]int {
	t.Helper()
	rows, err := f.db.Pool.Query(t.Context(),
		"select coalesce(outcome, 'none'), count(*) from tally.attempt group by 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var outcome string
		var n int
		if err := rows.Scan(&outcome, &n); err != nil {
			t.Fatal(err)
		}
		counts[outcome] = n
	}
	return counts
}

func TestFleetReadsEachSourceOnce(t *testing.T) {
	t.Parallel()
	for seed := range oracle.Seeds(t, 600, 100) {
		f := newFleetTest(t, seed, 10*time.Second)
		cfg, given := f.config(t, "w1")
		if err := reconcile.RunFleet(t.Context(), cfg); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := 0
		for _, lane := range f.history.Lanes {
			want += len(lane.Records)
		}
		if given.Load() != int64(want) {
			t.Errorf("seed %d: %d records were read, want %d", seed, given.Load(), want)
		}
		f.equalsBatch(t)
	}
}

// fleetRun is a fleet that goes on until it is stopped.
type fleetRun struct {
	stop context.CancelFunc
	done chan error
}

func (f *fleetTest) live(t *testing.T, worker string) *fleetRun {
	cfg, _ := f.config(t, worker)
	cfg.Loop.UntilEnd, cfg.Loop.Seal = false, false
	return runFleet(t, cfg)
}

func runFleet(t *testing.T, cfg reconcile.FleetConfig) *fleetRun {
	ctx, stop := context.WithCancel(t.Context())
	r := &fleetRun{stop, make(chan error, 1)}
	go func() { r.done <- reconcile.RunFleet(ctx, cfg) }()
	t.Cleanup(stop)
	return r
}

func (r *fleetRun) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestFleetsShareAndRebalance(t *testing.T) {
	t.Parallel()
	f := newFleetTest(t, 11, 3*time.Second)
	first := f.live(t, "w1")
	f.waitForLoads(t, map[string]int{"w1": 8})
	second := f.live(t, "w2")
	f.waitForLoads(t, map[string]int{"w1": 4, "w2": 4})
	third := f.live(t, "w3")
	f.waitForLoads(t, map[string]int{"w1": 3, "w2": 3, "w3": 2})
	if got := f.outcomes(t); got["handed over"] != 6 || got["fenced"] != 0 {
		t.Errorf("attempts ended with %v, want 6 handed over", got)
	}
	first.end(t)
	f.waitForLoads(t, map[string]int{"w2": 4, "w3": 4})
	third.end(t)
	f.waitForLoads(t, map[string]int{"w2": 8})
	second.end(t)
	last, _ := f.config(t, "w4")
	if err := reconcile.RunFleet(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	f.equalsBatch(t)
	f.readsBalance(t)
}

// readsBalance checks that no shard has read a record twice, or left one out.
func (f *fleetTest) readsBalance(t *testing.T) {
	t.Helper()
	want := int64(0)
	for _, lane := range f.history.Lanes {
		want += int64(len(lane.Records))
	}
	rows, err := f.db.Pool.Query(t.Context(),
		"select shard, sum(read)::bigint from tally.epoch group by shard")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var shard int32
		var read int64
		if err := rows.Scan(&shard, &read); err != nil {
			t.Fatal(err)
		}
		if read != want {
			t.Errorf("shard %d has read %d records, want %d", shard, read, want)
		}
	}
}

// TestFleetTakesOverFromTheDead: a worker that gives no sign of life keeps its shards for a lease
// and no longer, and can't write afterwards.
func TestFleetTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	f := newFleetTest(t, 12, 2*time.Second)
	var dead []*store.Shard
	for shard := range int32(fleetShards) {
		h, err := f.store.Take(t.Context(), f.generation, shard, "dead")
		if err != nil {
			t.Fatal(err)
		}
		dead = append(dead, h)
	}
	cfg, _ := f.config(t, "w1")
	if err := reconcile.RunFleet(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	f.equalsBatch(t)
	for _, h := range dead {
		if _, err := h.Extend(t.Context()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("a heartbeat from the dead: %v, want ErrFenced", err)
		}
	}
}

// failingLeases fail to give one shard, so many times.
type failingLeases struct {
	reconcile.Leases
	err   error
	times atomic.Int64
}

func (l *failingLeases) Take(
	ctx context.Context, shard int32,
) (reconcile.Shard, store.State, error) {
	if shard == 5 && l.times.Add(-1) >= 0 {
		return nil, store.State{}, l.err
	}
	return l.Leases.Take(ctx, shard)
}

func TestOneShardFailsAlone(t *testing.T) {
	t.Parallel()
	f := newFleetTest(t, 13, 2*time.Second)
	cfg, _ := f.config(t, "w1")
	// Run itself tries timeouts again; an unknown outcome it leaves to the fleet.
	failing := &failingLeases{Leases: cfg.Leases, err: store.ErrUnknown}
	failing.times.Store(2)
	cfg.Leases = failing
	cfg.Loop.UntilEnd, cfg.Loop.Seal = false, false
	run := runFleet(t, cfg)
	f.waitForLoads(t, map[string]int{"w1": 8})
	run.end(t)
	if left := failing.times.Load(); left > 0 {
		t.Errorf("%d failures did not happen", left)
	}
}

func TestFleetStopsForWhatCannotHeal(t *testing.T) {
	t.Parallel()
	f := newFleetTest(t, 14, 10*time.Second)
	cfg, _ := f.config(t, "w1")
	failing := &failingLeases{Leases: cfg.Leases, err: stream.ErrPositionLost}
	failing.times.Store(1)
	cfg.Leases = failing
	cfg.Loop.UntilEnd, cfg.Loop.Seal = false, false
	if err := reconcile.RunFleet(t.Context(), cfg); !errors.Is(err, stream.ErrPositionLost) {
		t.Errorf("the fleet ends with %v, want ErrPositionLost", err)
	}
	leases, err := f.store.Leases(t.Context(), f.generation)
	for _, l := range leases {
		if !l.Free() {
			t.Errorf("shard %d is still leased", l.Shard)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRunUntilTheEndReportsAShardTakenOver: it finishes the others.
func TestRunUntilTheEndReportsAShardTakenOver(t *testing.T) {
	t.Parallel()
	f := newFleetTest(t, 15, 10*time.Second)
	cfg, _ := f.config(t, "w1")
	failing := &failingLeases{Leases: cfg.Leases, err: store.ErrFenced}
	failing.times.Store(1)
	cfg.Leases = failing
	if err := reconcile.RunFleet(t.Context(), cfg); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the fleet ends with %v, want ErrFenced", err)
	}
	if got := f.outcomes(t); got["done"] != fleetShards-1 {
		t.Errorf("attempts ended with %v, want %d done", got, fleetShards-1)
	}
}
