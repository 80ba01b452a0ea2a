package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/store/archive"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// oldDamages change rows that are older than the two newest epochs, which are all that is retained.
var oldDamages = []string{
	`update tally.buffer set attributes = '{"forged":1}' where ctid = (
		select b.ctid from tally.buffer b join tally.shard s using (generation_id, shard)
		where generation_id = $1 and retired_epoch is null and horizon >= s.watermark
			and added_epoch < s.epoch - 2
		order by added_epoch, id limit 1)`,
	`delete from tally.buffer where ctid = (
		select b.ctid from tally.buffer b join tally.shard s using (generation_id, shard)
		where generation_id = $1 and retired_epoch is null and horizon >= s.watermark
			and added_epoch < s.epoch - 2
		order by added_epoch, id limit 1)`,
	`update tally.match set key = key || 'x' where ctid = (
		select m.ctid from tally.match m join tally.shard s using (generation_id, shard)
		where generation_id = $1 and m.horizon >= s.watermark
			and status in ('matched', 'provisional', 'final') and opened_epoch < s.epoch - 2
		order by opened_epoch, match_id limit 1)`,
	`update tally.epoch set read = read + 1, accepted = accepted + 1 where generation_id = $1`,
}

// archiveDrill is one history with an archive beside it.
type archiveDrill struct {
	db         *testenv.Database
	store      *store.Store
	history    *oracle.History
	generation int32
	archives   *reconcile.Archives
	upkeep     *reconcile.Upkeep
	directory  string
	maxEvents  int
	logger     *slog.Logger
}

func newArchiveDrill(
	t *testing.T, db *testenv.Database, st *store.Store, history *oracle.History,
) *archiveDrill {
	t.Helper()
	d := &archiveDrill{
		db: db, store: st, history: history, directory: t.TempDir(),
		maxEvents: 1 + int(history.Seed%30),
		logger:    slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	name := fmt.Sprintf("archived-%d", history.Seed)
	d.generation = register(t, st, name, history.Rule.Version)
	a, err := archive.Open("file://"+filepath.ToSlash(d.directory), 2)
	if err != nil {
		t.Fatal(err)
	}
	d.archives = &reconcile.Archives{Archive: a, Reconciliation: name, Generation: d.generation}
	d.upkeep = &reconcile.Upkeep{
		Store: st, Generation: d.generation, Shards: 1, Archive: d.archives,
		Retain: store.Retention{Epochs: 2, For: time.Hour}, Every: time.Nanosecond, Logger: d.logger,
	}
	return d
}

// run runs the loop with its upkeep to the end of the history, or stops it after a random epoch.
func (d *archiveDrill) run(t *testing.T, rng *rand.Rand, last int64) (stopped bool, err error) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var cut atomic.Bool
	leases := reconcile.WithArchive(
		reconcile.StoreLeases(d.store, d.generation, "test"), d.archives, d.logger)
	cfg := reconcile.Config{
		Join: configOf(d.history.Rule, rng), Logger: d.logger,
		MaxEvents: d.maxEvents, MaxDelay: time.Millisecond, UntilEnd: true,
		Seal: d.history.Sealed,
		Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
			return leases.Take(ctx, 0)
		},
		Upkeep: func(ctx context.Context) { d.upkeep.Run(ctx, 0) },
		OnEpoch: func(*stream.Delta) {
			if last--; last < 0 {
				cut.Store(true)
				stop()
			}
		},
	}
	for _, lane := range d.history.Lanes {
		cfg.Sources = append(cfg.Sources, &laneSource{lane: lane})
	}
	err = reconcile.Run(ctx, cfg)
	return cut.Load(), err
}

// outcome compares with the batch join, verifies everything, and counts the falls back to the
// archive.
func (d *archiveDrill) outcome(t *testing.T) (fallbacks, replayed int, err error) {
	t.Helper()
	ctx := t.Context()
	if err := equalsBatch(ctx, d.db, d.generation, d.history); err != nil {
		return 0, 0, err
	}
	report, err := d.store.Verify(ctx, d.generation, 0, false)
	if err != nil || len(report.Damage) > 0 {
		return 0, 0, fmt.Errorf("verify afterwards: %v %w", report.Damage, err)
	}
	var diverged int
	err = d.db.Pool.QueryRow(ctx, `select
		(select count(*) from tally.attempt where generation_id = $1 and restored_from = 'archive'),
		(select count(replays) from tally.epoch where generation_id = $1),
		(select count(replay_divergence) from tally.epoch where generation_id = $1)`,
		d.generation).Scan(&fallbacks, &replayed, &diverged)
	if err == nil && diverged > 0 {
		err = fmt.Errorf("%d replays diverged", diverged)
	}
	return fallbacks, replayed, err
}

// TestOldDamageFallsBackToTheArchive runs confluent histories with restarts, archives between them,
// and then damages rows that are older than every retained epoch. The next worker must find that,
// go back to a snapshot and replay with the same outputs; in the end the active rows equal the
// batch join.
func TestOldDamageFallsBackToTheArchive(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	st, err := store.Open(t.Context(), store.Config{
		ConnString: db.URL, Schema: db.Schema, RetainEpochs: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	fallbacks, replays := 0, 0
	for seed := range oracle.Seeds(t, 100, 10) {
		d := newArchiveDrill(t, db, st, oracle.Generate(seed, oracle.Confluent))
		f, r, err := d.drill(t)
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		fallbacks += f
		replays += r
	}
	t.Logf("%d falls back to the archive, %d epochs replayed", fallbacks, replays)
	if !testing.Short() && (fallbacks == 0 || replays == 0) {
		t.Errorf("the archive was hardly used: %d falls back, %d replays", fallbacks, replays)
	}
}

func (d *archiveDrill) drill(t *testing.T) (fallbacks, replayed int, err error) {
	rng := rand.New(rand.NewPCG(d.history.Seed, 7))
	for run := 1; ; run++ {
		last := rng.Int64N(9)
		if run > 9 {
			last = 1 << 40
		}
		// The same configuration each time: another size of epochs may close windows elsewhere.
		stopped, err := d.run(t, rand.New(rand.NewPCG(d.history.Seed, 6)), last)
		if err != nil {
			return 0, 0, fmt.Errorf("run %d: %w", run, err)
		}
		if !stopped {
			return d.outcome(t)
		}
		list, err := d.archives.List(t.Context(), archive.Of{
			Reconciliation: d.archives.Reconciliation, Generation: d.generation,
		})
		if err != nil {
			return 0, 0, err
		}
		if len(list) > 0 && rng.IntN(2) == 0 {
			damage := oldDamages[rng.IntN(len(oldDamages))]
			if _, err := d.db.Pool.Exec(t.Context(), damage, d.generation); err != nil {
				return 0, 0, err
			}
		}
	}
}

// TestADamagedSnapshotIsNotUsed flips a byte of the newest snapshot: the one before it is used.
// With both damaged the worker refuses to start and names what is.
func TestADamagedSnapshotIsNotUsed(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	d := newArchiveDrill(t, db, st, oracle.Generate(3, oracle.Confluent))
	d.maxEvents = 1
	same := func() *rand.Rand { return rand.New(rand.NewPCG(3, 6)) }
	d.upkeep.Every = time.Hour
	for range 2 {
		if stopped, err := d.run(t, same(), 3); err != nil || !stopped {
			t.Fatalf("stopped %v, %v", stopped, err)
		}
		d.upkeep.Every = time.Nanosecond
		d.upkeep.Finish(t.Context(), []int32{0})
		d.upkeep.Every = time.Hour
	}
	of := archive.Of{Reconciliation: d.archives.Reconciliation, Generation: d.generation}
	list, err := d.archives.List(t.Context(), of)
	if err != nil || len(list) != 2 {
		t.Fatalf("the archive has %v (%v), want two", list, err)
	}
	spoil := func(s archive.Snapshot) {
		name := filepath.Join(d.directory, filepath.FromSlash(s.Name))
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 8
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage := func() {
		if _, err := db.Pool.Exec(t.Context(), oldDamages[3], d.generation); err != nil {
			t.Fatal(err)
		}
	}
	spoil(list[0])
	damage()
	if _, err := d.run(t, same(), 1<<40); err != nil {
		t.Fatal(err)
	}
	if fallbacks, _, err := d.outcome(t); err != nil || fallbacks != 1 {
		t.Errorf("%d falls back to the archive (%v), want 1", fallbacks, err)
	}
	var from int64
	err = db.Pool.QueryRow(t.Context(), `select restored_epoch from tally.attempt
		where generation_id = $1 and restored_from = 'archive'`, d.generation).Scan(&from)
	if err != nil || from != list[1].Epoch {
		t.Errorf("went back to epoch %d (%v), want %d", from, err, list[1].Epoch)
	}
	spoil(list[1])
	damage()
	_, err = d.run(t, same(), 1<<40)
	if !errors.Is(err, store.ErrDamaged) || !errors.Is(err, reconcile.ErrNoSnapshot) {
		t.Errorf("started with nothing that verifies: %v", err)
	}
}

// TestUpkeepPurges lets the upkeep of a shard run until what no retained epoch needs is gone.
func TestUpkeepPurges(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	d := newArchiveDrill(t, db, st, oracle.Generate(5, oracle.Confluent))
	d.maxEvents, d.upkeep.Archive = 1, nil
	d.upkeep.Retain.Epochs = 1 << 20 // nothing goes while it runs
	if _, err := d.run(t, rand.New(rand.NewPCG(5, 6)), 1<<40); err != nil {
		t.Fatal(err)
	}
	needless := func() (n int) {
		err := db.Pool.QueryRow(t.Context(), `
			select count(*) from tally.buffer b, (
				select epoch, watermark_after from tally.epoch where generation_id = $1
				order by epoch desc offset 2 limit 1) oldest
			where generation_id = $1 and (retired_epoch <= oldest.epoch
				or horizon < oldest.watermark_after)`, d.generation).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if needless() == 0 {
		t.Fatal("the history leaves nothing to purge")
	}
	d.upkeep.Retain.Epochs = 3
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.upkeep.Run(ctx, 0)
	}()
	for needless() > 0 && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	<-done
	if n := needless(); n > 0 {
		t.Errorf("%d rows are left that no retained epoch needs", n)
	}
	if _, _, err := d.outcome(t); err != nil {
		t.Error(err)
	}
}
