package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestIntervalsEqualTheBatchJoin builds the interval of random histories through the whole loop,
// with restarts at random epochs, and compares the results in the scope of the merge with one SQL
// join over all raw events.
func TestIntervalsEqualTheBatchJoin(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	for seed := range oracle.Seeds(t, 2000, 100) {
		history := oracle.Generate(seed, oracle.Confluent)
		if err := compareInterval(t, db, st, history); err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v\n%s", seed, seed, err,
				history.Describe(history.Split(seed)))
		}
	}
}

func compareInterval(
	t *testing.T, db *testenv.Database, st *store.Store, history *oracle.History,
) error {
	rng := rand.New(rand.NewPCG(history.Seed, 12))
	reach := max(history.Rule.Before, history.Rule.After)
	scope := someRange(history, rng)
	scope = stream.Range{From: scope.From.Add(-reach), To: scope.To.Add(reach)}
	wide := stream.Range{From: scope.From.Add(-reach), To: scope.To.Add(reach)}
	generation := register(t, st, fmt.Sprintf("interval-%d", history.Seed), history.Rule.Version)
	for run := 1; ; run++ {
		stopped, err := runInterval(t, st, generation, history, wide, rng, run)
		if err != nil {
			return fmt.Errorf("run %d: %w", run, err)
		}
		if !stopped {
			break
		}
	}
	lines, err := active(t.Context(), db, generation)
	if err != nil {
		return err
	}
	all, err := batchOf(t.Context(), db, history)
	if err != nil {
		return err
	}
	if got, want := inScope(lines, history, scope), inScope(all, history, scope); !slices.Equal(
		got, want) {
		return fmt.Errorf("results of %v are\n%q\nwant\n%q", scope, got, want)
	}
	return nil
}

// runInterval runs until the interval has caught up with a sealed generation, or stops after a
// random epoch.
func runInterval(
	t *testing.T, st *store.Store, generation int32, history *oracle.History, wide stream.Range,
	rng *rand.Rand, run int,
) (stopped bool, err error) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	last := rng.Int64N(6)
	var cut atomic.Bool
	sources, catchUp := lanesOf(history)
	narrowed, err := reconcile.Between(sources, wide, catchUp)
	if err != nil {
		return false, err
	}
	err = reconcile.Run(ctx, reconcile.Config{
		Join: configOf(history.Rule, rng), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Sources: narrowed, CatchUp: catchUp, CatchUpOnly: true,
		MaxEvents: 1 + rng.IntN(30), MaxDelay: time.Millisecond,
		Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
			shard, err := st.Take(ctx, generation, 0, "test")
			if err != nil {
				return nil, store.State{}, err
			}
			return shard, shard.State, nil
		},
		OnEpoch: func(*stream.Delta) {
			if last--; last < 0 && run < 10 {
				cut.Store(true)
				stop()
			}
		},
	})
	return cut.Load(), err
}
