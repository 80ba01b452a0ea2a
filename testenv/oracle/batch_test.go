package oracle

import (
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv"
)

// batch runs Batch in a transaction of its own.
func batch(t *testing.T, db *testenv.Database, h *History) []string {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	lines, err := Batch(t.Context(), tx, h, BatchSQL{
		RawEvent: queries.Torture("raw_event"), Join: queries.Torture("batch"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestModelEqualsBatch: however a confluent history is cut, the model sets nothing aside and ends
// with the rows that one SQL join gives.
func TestModelEqualsBatch(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	total, histories := 0, 0
	for seed := range Seeds(t, 500, 1) {
		histories++
		h := Generate(seed, Confluent)
		want := batch(t, db, h)
		total += len(want)
		for cut := range uint64(splits) {
			epochs := h.Split(cut)
			m := run(h, epochs, func(_ *Model, rep Report) {
				if len(rep.Corrections)+len(rep.Quarantined) > 0 {
					t.Fatalf("seed %d cut %d: set aside %v %v\n%s", seed, cut, rep.Corrections,
						rep.Quarantined, h.Describe(epochs))
				}
			})
			if got := m.Active(); !slices.Equal(got, want) {
				t.Fatalf("seed %d cut %d: model %q, batch %q\n%s", seed, cut, got, want,
					h.Describe(epochs))
			}
		}
	}
	if histories >= 100 && total < histories {
		t.Errorf("%d rows in %d histories: too few to mean anything", total, histories)
	}
}

// TestBatchByHand holds the SQL to a result worked out by hand, so that model and SQL can't be
// wrong together.
func TestBatchByHand(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	h := &History{Rule: Rule{Before: 2 * time.Microsecond, After: 5 * time.Microsecond}}
	for _, p := range singlePartitions() {
		h.Lanes = append(h.Lanes, Slice{Partition: p})
	}
	add := func(s stream.Side, id string, revision int64, key string, at stream.Micros, dead bool) {
		lane := &h.Lanes[s]
		lane.Records = append(lane.Records, record(stream.Event{
			ID: id, Revision: revision, Key: key, Time: at, HasTime: true, Deleted: dead,
			Attributes: "{}",
		}, len(lane.Records)+1))
	}
	add(stream.Left, "a", 1, "k", 100, false)
	add(stream.Left, "b", 2, "k", 101, false)
	add(stream.Left, "b", 1, "k", 200, false)
	add(stream.Left, "c", 1, "other", 100, false)
	add(stream.Left, "d", 1, "k", 100, false)
	add(stream.Left, "d", 2, "k", 100, true)
	add(stream.Right, "w", 1, "k", 97, false)
	add(stream.Right, "x", 1, "k", 98, false)
	add(stream.Right, "y", 1, "k", 105, false)
	add(stream.Right, "z", 1, "k", 106, false)
	add(stream.Right, "z", 1, "k", 106, false)
	pairs := []string{"matched a/1 x/1", "matched a/1 y/1", "matched b/2 y/1", "matched b/2 z/1"}
	left, right := []string{"final c/1 -"}, []string{"final - w/1"}
	for join, want := range map[string][]string{
		JoinInner: pairs,
		JoinLeft:  slices.Concat(left, pairs),
		JoinRight: slices.Concat(right, pairs),
		JoinFull:  slices.Concat(right, left, pairs),
	} {
		h.Rule.Join = join
		if got := batch(t, db, h); !slices.Equal(got, want) {
			t.Errorf("join %s: got %q, want %q", join, got, want)
		}
	}
}
