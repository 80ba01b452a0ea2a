package store_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// tick is the event-time unit of the tests: so long that their results are in many buckets.
const tick = stream.Micros(10 * 60 * 1_000_000)

// bundle is one registered shard, taken by one attempt.
type bundle struct {
	*store.Store
	db         *testenv.Database
	generation int32
	shard      *store.Shard
	// told is what stands after each epoch of a story.
	told []string
}

func setup(t testing.TB) *bundle {
	t.Helper()
	db := testenv.DB(t)
	b := &bundle{db: db, Store: open(t, db, nil)}
	b.generation = b.register(t, "payments", 2)
	b.shard = b.take(t, b.Store)
	return b
}

func open(t testing.TB, db *testenv.Database, configure func(*pgxpool.Config)) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{
		ConnString: db.URL, Schema: db.Schema, MaxConns: 4, Configure: configure,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (b *bundle) register(t testing.TB, name string, shards int) int32 {
	t.Helper()
	generation, err := b.Register(t.Context(), store.Registration{
		Name: name, RuleVersion: "v1", Rule: []byte(`{"join": "full"}`), Shards: shards,
	})
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

// take takes the shard, from whoever holds it as well: the lease runs out first.
func (b *bundle) take(t testing.TB, s *store.Store) *store.Shard {
	t.Helper()
	b.expire(t)
	h, err := s.Take(t.Context(), b.generation, 0, "host/1")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// expire makes the lease of shard 0 one that has just run out.
func (b *bundle) expire(t testing.TB) {
	t.Helper()
	sql := fmt.Sprintf("update %s set lease_until = clock_timestamp() where generation_id = $1 and "+
		"shard = 0", pgx.Identifier{b.db.Schema, "shard"}.Sanitize())
	if _, err := b.db.Pool.Exec(t.Context(), sql, b.generation); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, h *store.Shard, deltas ...*stream.Delta) {
	t.Helper()
	for _, d := range deltas {
		if err := h.Commit(t.Context(), h.Encode(d)); err != nil {
			t.Fatal(err)
		}
	}
}

// event gives a live event with an id and key, at n seconds.
func event(id, key string, n int) stream.Event {
	return stream.Event{
		ID: id, Revision: 1, Key: key, Time: stream.Micros(n) * tick, HasTime: true,
		Attributes: fmt.Sprintf(`{"amount":"%d.10"}`, n),
	}
}

func row(side stream.Side, e stream.Event, horizon stream.Micros, epoch int64) stream.BufferRow {
	return stream.BufferRow{
		Side: side, Event: e, Horizon: horizon, Source: "file", Number: 3,
		Position: fmt.Sprint("at ", e.ID), AddedEpoch: epoch,
	}
}

// pair gives the result of two rows; only gives the result of one.
func pair(left, right stream.BufferRow) stream.Result {
	return stream.Result{
		MatchID: identity(left.ID, right.ID), Kind: stream.Pair, Status: stream.Matched,
		Left: member(left.Event), Right: member(right.Event), Key: left.Key,
		Horizon: max(left.Horizon, right.Horizon), Verdict: "differ",
		Differences: `[{"left": "1.10", "field": "amount", "right": "2.10"}]`,
	}
}

func only(r stream.BufferRow, status stream.Status) stream.Result {
	only := stream.Result{
		Kind: stream.OnlyKind(r.Side), Status: status, Key: r.Key, Horizon: r.Horizon,
	}
	if r.Side == stream.Left {
		only.Left, only.MatchID = member(r.Event), identity(r.ID, "")
	} else {
		only.Right, only.MatchID = member(r.Event), identity("", r.ID)
	}
	return only
}

func member(e stream.Event) stream.Member {
	return stream.Member{ID: e.ID, Revision: e.Revision, Time: e.Time}
}

func identity(left, right string) stream.MatchID {
	return sha256.Sum256([]byte(left + "|" + right))
}

func fresh(r stream.Result, cause stream.Reason) stream.Change {
	return stream.Change{Result: r, Cause: cause, Fresh: true}
}

func moved(r stream.Result, to stream.Status, cause stream.Reason) stream.Change {
	r.Status = to
	return stream.Change{Result: r, Cause: cause}
}

// delta gives an epoch whose watermark goes from epoch-1 to epoch seconds.
func delta(epoch int64) *stream.Delta {
	return &stream.Delta{
		Epoch: epoch, Clock: 1_750_000_000_123_456,
		WatermarkBefore: stream.Micros(epoch-1) * tick,
		WatermarkAfter:  stream.Micros(epoch) * tick,
		Progress: []stream.Progress{{
			Partition: stream.Partition{Side: stream.Left, Source: "file", Number: 3},
			From:      fmt.Sprint((epoch - 1) * 100), To: fmt.Sprint(epoch * 100),
			Watermark: stream.Micros(epoch) * tick, LastEventAt: 1_750_000_000_123_456,
			Identity: "head 1",
		}},
	}
}
