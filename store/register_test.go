package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		name string
		r    store.Registration
		want error
		says string
	}{
		{"the same", store.Registration{
			RuleVersion: "v1", Rule: []byte(`{"join" : "full"}`),
			Shards: 2,
		}, nil, ""},
		{
			"another rule",
			store.Registration{
				RuleVersion: "v1",
				Rule:        []byte(`{"join": "left", "lateness_us": 5}`), Shards: 2,
			},
			store.ErrRuleChanged, "join, lateness_us",
		},
		{"another version", store.Registration{
			RuleVersion: "v2",
			Rule:        []byte(`{"join": "left"}`), Shards: 2,
		}, store.ErrOtherRule, "v2"},
		{"other shards", store.Registration{
			RuleVersion: "v1",
			Rule:        []byte(`{"join": "full"}`), Shards: 3,
		}, store.ErrOtherRule, "3"},
	} {
		c.r.Name = "payments"
		generation, err := b.Register(t.Context(), c.r)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", c.name, err, c.want, c.says)
		}
		if err == nil && generation != b.generation {
			t.Errorf("%s: generation %d, want %d", c.name, generation, b.generation)
		}
	}
	if _, err := b.Take(t.Context(), b.generation, 2, "w"); !errors.Is(err, store.ErrNoShard) {
		t.Errorf("take shard 2 of 2: %v, want ErrNoShard", err)
	}
}

func TestWorkersStartAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const workers = 8
	shards := make([]*store.Shard, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			generation, err := b.Register(t.Context(), store.Registration{
				Name: "other", RuleVersion: "v1", Rule: []byte(`{}`), Shards: 1,
			})
			if err != nil {
				t.Error(err)
				return
			}
			shards[i], err = b.Take(t.Context(), generation, 0, "w")
			if err != nil && !errors.Is(err, store.ErrHeld) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	taken := 0
	for _, h := range shards {
		if h != nil {
			taken++
			commit(t, h, delta(1))
		}
	}
	if taken != 1 {
		t.Errorf("%d of %d workers took the shard, want 1", taken, workers)
	}
}

func TestHostileSchemaName(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	const schema = `a"; drop table x; -- :"schema" $1 '`
	rename := "alter schema tally rename to " + pgx.Identifier{schema}.Sanitize()
	if _, err := db.Pool.Exec(t.Context(), rename); err != nil {
		t.Fatal(err)
	}
	db.Schema = schema
	b := &bundle{db: db, Store: open(t, db, nil)}
	b.generation = b.register(t, "payments", 1)
	h := b.take(t, b.Store)
	commit(t, h, busyDelta(1), busyDelta(2))
	if err := h.Spill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	needs := stream.Needs{
		Keys: []string{"k1"}, Due: []stream.Range{{From: 0, To: stream.Infinity}},
		DueMax: 9, Keeps: [2]bool{true, true},
	}
	found, _, err := h.Fetch(t.Context(), needs, 0)
	if err != nil || len(found.Rows) != 5 || len(found.Results) != 3 {
		t.Errorf("found %d rows, %d results, %v", len(found.Rows), len(found.Results), err)
	}
	if _, err := h.Load(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := b.Release(t.Context(), b.generation, 0, 1, 0, nil); err != nil {
		t.Error(err)
	}
	if err := h.Leave(t.Context(), "done"); err != nil {
		t.Error(err)
	}
}

func TestQuarantineRelease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	release := func(epoch int64, repaired []byte) error {
		return b.Release(t.Context(), b.generation, 0, epoch, 0, repaired)
	}
	if err := errors.Join(release(2, []byte("{}")), release(1, nil)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{release(1, nil), release(9, nil)} {
		if !errors.Is(err, store.ErrNotOpen) {
			t.Errorf("release again: %v, want ErrNotOpen", err)
		}
	}
	rows, err := b.Released(t.Context(), b.generation, stream.Right, 0, 10)
	if err != nil || len(rows) != 2 || string(rows[0].Raw) != "{}" ||
		string(rows[1].Raw) != "\x00\xff{" || rows[0].Seq != 1 || rows[1].Seq != 2 {
		t.Fatalf("released %+v, %v", rows, err)
	}
	d := delta(3)
	d.Progress = append(d.Progress, stream.Progress{
		Partition: stream.Partition{Side: stream.Right, Source: "quarantine"}, To: "1",
	})
	commit(t, b.shard, d)
	for ordinal, want := range map[int64]string{1: "released", 2: "resolved"} {
		if got := b.status(t, ordinal); got != want {
			t.Errorf("record of epoch %d is %s, want %s", ordinal, got, want)
		}
	}
}

func (b *bundle) status(t *testing.T, epoch int64) (status string) {
	t.Helper()
	row := b.db.Pool.QueryRow(t.Context(),
		"select status from tally.quarantine where epoch = $1", epoch)
	if err := row.Scan(&status); err != nil {
		t.Fatal(err)
	}
	return status
}

func TestRedoByUpsert(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	want := b.dump(t)
	other := &bundle{Store: b.Store, db: b.db}
	other.generation = other.register(t, "other", 2)
	h := other.take(t, b.Store)
	commit(t, h, busyDelta(1))
	d := busyDelta(2)
	d.Changes[0].Fresh = true // it is there, and superseded now
	commit(t, h, d)
	if got := h.Stats().Redone; got != 1 {
		t.Errorf("%d epochs redone, want 1", got)
	}
	wantSame(t, other.dump(t), want)
}

func TestTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.dump(t)
	lock, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "lock table tally.buffer in exclusive mode"); err != nil {
		t.Fatal(err)
	}
	slow := open(t, b.db, nil)
	if _, err := b.db.Pool.Exec(t.Context(),
		"alter role current_user in database "+
			pgx.Identifier{b.db.Pool.Config().ConnConfig.Database}.Sanitize()+
			" set statement_timeout = '300ms'"); err != nil {
		t.Fatal(err)
	}
	// A pooler keeps sessions from before the setting.
	if _, err := b.db.Pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and application_name = 'tallystick'`); err != nil {
		t.Fatal(err)
	}
	h := b.take(t, slow)
	err = h.Commit(t.Context(), h.Encode(busyDelta(1)))
	if !errors.Is(err, store.ErrTimedOut) || store.Classify(err) != store.TimedOut {
		t.Errorf("commit beside a lock: %v, want ErrTimedOut", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Commit(ctx, h.Encode(busyDelta(1))); !errors.Is(err, context.Canceled) {
		t.Errorf("commit after cancel: %v, want context.Canceled", err)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSame(t, b.dump(t), before)
	commit(t, h, busyDelta(1))
}
