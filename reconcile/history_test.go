package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestHistoriesEqualTheBatchJoin runs confluent histories through the whole loop into Postgres,
// with random epoch sizes and caches and with restarts at random epochs, and compares the active
// rows with one SQL join over the raw events.
func TestHistoriesEqualTheBatchJoin(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	for seed := range oracle.Seeds(t, 2000, 50) {
		history := oracle.Generate(seed, oracle.Confluent)
		if err := compareWithBatch(t, db, st, history); err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v\n%s", seed, seed, err,
				history.Describe(history.Split(seed)))
		}
	}
}

// openStore gives a migrated database and a store on it.
func openStore(t *testing.T) (*testenv.Database, *store.Store) {
	t.Helper()
	db := testenv.DB(t)
	st, err := store.Open(t.Context(), store.Config{ConnString: db.URL, Schema: db.Schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return db, st
}

// register gives a generation of its own to a reconciliation.
func register(t *testing.T, st *store.Store, name, ruleVersion string) int32 {
	t.Helper()
	generation, err := st.Register(t.Context(), store.Registration{
		Name: name, RuleVersion: ruleVersion, Rule: []byte(`{}`), Shards: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

func compareWithBatch(
	t *testing.T, db *testenv.Database, st *store.Store, history *oracle.History,
) error {
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(history.Seed, 3))
	generation := register(t, st, fmt.Sprintf("seed-%d", history.Seed), history.Rule.Version)
	for run := 1; ; run++ {
		stopped, err := runOnce(t, st, generation, history, rng, run, nil)
		if err != nil {
			return fmt.Errorf("run %d: %w", run, err)
		}
		if !stopped {
			break
		}
	}
	return equalsBatch(ctx, db, generation, history)
}

// equalsBatch compares the active rows of a generation with one SQL join over the raw events.
func equalsBatch(
	ctx context.Context, db *testenv.Database, generation int32, history *oracle.History,
) error {
	want, err := batchJoin(ctx, db, history)
	if err != nil {
		return err
	}
	got, err := active(ctx, db, generation)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("active rows are\n%q\nwant\n%q", got, want)
	}
	return nil
}

// batchJoin gives the results of one SQL join over the raw events, sorted.
func batchJoin(
	ctx context.Context, db *testenv.Database, history *oracle.History,
) ([]string, error) {
	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	want, err := oracle.Batch(ctx, tx, history, oracle.BatchSQL{
		RawEvent: queries.Torture("raw_event"), Join: queries.Torture("batch"),
	})
	return want, errors.Join(err, tx.Rollback(ctx))
}

// runOnce runs the loop until the end of the history, or stops it after a random epoch.
func runOnce(
	t *testing.T, st *store.Store, generation int32, history *oracle.History,
	rng *rand.Rand, run int, onEpoch func(*stream.Delta),
) (stopped bool, err error) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	last := rng.Int64N(6)
	var cut atomic.Bool
	cfg := reconcile.Config{
		Join: configOf(history.Rule, rng), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		MaxEvents: 1 + rng.IntN(30), MaxDelay: time.Millisecond,
		UntilEnd: true, Seal: history.Sealed,
		Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
			shard, err := st.Take(ctx, generation, 0, "test")
			if err != nil {
				return nil, store.State{}, err
			}
			return shard, shard.State, nil
		},
		OnEpoch: func(d *stream.Delta) {
			if onEpoch != nil {
				onEpoch(d)
			}
			if last--; last < 0 && run < 10 {
				cut.Store(true)
				stop()
			}
		},
	}
	for _, lane := range history.Lanes {
		cfg.Sources = append(cfg.Sources, &laneSource{lane: lane})
	}
	err = reconcile.Run(ctx, cfg)
	return cut.Load(), err
}

func configOf(r oracle.Rule, rng *rand.Rand) join.Config {
	cfg := join.Config{
		Rule: join.Rule{
			Version: r.Version, Kind: join.Kind(r.Join), Before: r.Before, After: r.After,
			Lateness: r.Lateness, Provisional: join.Policy(r.Provisional),
		},
		MaxAhead: r.MaxAhead, MaxSkew: r.MaxSkew, MaxPairsPerKey: 100000,
		CacheRows: 1 << 20, ClosingsMax: 1 + rng.IntN(100), OutOfOrderness: r.OutOfOrderness,
		PairsMax: rng.IntN(10),
	}
	if rng.IntN(2) == 0 {
		cfg.CacheRows = rng.IntN(20)
	}
	return cfg
}

func active(ctx context.Context, db *testenv.Database, generation int32) ([]string, error) {
	rows, err := db.Pool.Query(ctx, `
		select status || ' ' || coalesce(left_id || '/' || left_revision, '-')
			|| ' ' || coalesce(right_id || '/' || right_revision, '-')
		from tally.match
		where generation_id = $1 and status in ('matched', 'provisional', 'final')`, generation)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines, rows.Err()
}

// laneSource gives the records of one partition of a history; a position is an ordinal.
type laneSource struct {
	lane oracle.Slice
	read int
}

func (s *laneSource) Partition() stream.Partition { return s.lane.Partition }

func (s *laneSource) Open(_ context.Context, position, identity string) (string, error) {
	s.read = 0
	if position != "" {
		n, err := strconv.Atoi(position)
		if err != nil || identity != s.Identity() {
			return "", fmt.Errorf("position %q of %q: %w", position, identity, stream.ErrPositionLost)
		}
		s.read = n
	}
	return s.Identity(), nil
}

func (s *laneSource) Read(_ context.Context, limit int) ([]stream.Record, bool, error) {
	records := s.lane.Records[s.read:min(s.read+limit, len(s.lane.Records))]
	s.read += len(records)
	return records, s.read == len(s.lane.Records), nil
}

func (s *laneSource) Compare(_ context.Context, a, b string) (int, error) {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)), nil
}

func (s *laneSource) Identity() string            { return "lane " + s.lane.String() }
func (s *laneSource) PollInterval() time.Duration { return time.Millisecond }
func (s *laneSource) Bound(context.Context) error { return nil }
func (s *laneSource) Seal()                       {}
func (s *laneSource) Close() error                { return nil }
