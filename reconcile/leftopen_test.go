package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestLeftOpen: what an interval does not hold in whole stays open, and so does the same record in
// other shards.
func TestLeftOpen(t *testing.T) {
	t.Parallel()
	rule := oracle.Rule{Before: time.Second, After: time.Second}
	joined := configOf(rule, rand.New(rand.NewPCG(1, 1))).Rule
	at := func(second float64) stream.Micros {
		return tenToEleven().From.Add(time.Duration(second * float64(time.Second)))
	}
	correction := func(shard int32, position string, from, to float64) store.OpenCorrection {
		return store.OpenCorrection{
			Shard: shard, Partition: stream.Partition{Source: "s"}, Position: position,
			Affected: stream.Range{From: at(from - 1), To: at(to + 1)},
		}
	}
	list := []store.OpenCorrection{
		correction(0, "1", 10, 10), correction(0, "2", 5, 11), correction(0, "3", 20, 20),
		correction(1, "3", 12, 12), correction(1, "4", 19.999999, 19.999999),
	}
	got := reconcile.LeftOpen(joined, stream.Range{From: at(10), To: at(20)}, list)
	if want := list[1:4]; !slices.Equal(got, want) {
		t.Errorf("left open are\n%+v\nwant\n%+v", got, want)
	}
}

// TestMergeLeavesOpenWhatIsNear: beside the interval a late event has a partner outside of the scope
// of the merge. Were it part of what is merged, that one would have a pair and be unmatched as well.
func TestMergeLeavesOpenWhatIsNear(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	at := func(second float64) stream.Micros {
		return tenToEleven().From.Add(time.Duration(second * float64(time.Second)))
	}
	lane := func(side stream.Side, events ...stream.Event) oracle.Slice {
		l := oracle.Slice{Partition: stream.Partition{Side: side, Source: side.String()}}
		for i, e := range events {
			e.Revision, e.Key, e.HasTime, e.Attributes = 1, "k", true, "{}"
			l.Records = append(l.Records, stream.Record{Event: e, Position: strconv.Itoa(i + 1)})
		}
		return l
	}
	history := &oracle.History{Rule: oracle.Rule{
		Version: "v1", Join: oracle.JoinFull, Before: time.Second, After: time.Second,
		Provisional: oracle.Never, MaxSkew: time.Hour, MaxAhead: time.Hour,
	}, Lanes: []oracle.Slice{
		lane(stream.Left, stream.Event{ID: "far", Time: at(10)}, stream.Event{ID: "in", Time: at(12.5)},
			stream.Event{ID: "end", Time: at(100)}),
		lane(stream.Right, stream.Event{ID: "end", Time: at(200)},
			stream.Event{ID: "near", Time: at(11)}, stream.Event{ID: "late", Time: at(12.5)}),
	}}
	seen := *history
	seen.Lanes = slices.Clone(history.Lanes)
	seen.Lanes[1].Records = seen.Lanes[1].Records[:1]
	c := &candidacy{
		db: db, store: st, forgets: map[int32]bool{}, rng: rand.New(rand.NewPCG(1, 7)),
		history: history, seen: history, wide: true,
	}
	r := &rebuilding{
		candidacy: c, shards: 1, base: c.register(t, "base", 1), name: fmt.Sprint(t.Name(), " base 0"),
		follower: follower{cursor: map[int32]int64{}, status: map[string]string{}},
	}
	for _, lanes := range [][]oracle.Slice{seen.Lanes, history.Lanes} {
		_, err := r.run(t, r.base, 0, 1, lanes, func(cfg *reconcile.Config) { cfg.UntilEnd = true })
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, open, err := r.stands(t)
	if want := []string{"final far/1 -", "final in/1 -"}; err != nil || !slices.Equal(rows, want) ||
		len(open) != 2 {
		t.Fatalf("active are %q, want %q; open %+v; %v", rows, want, open, err)
	}
	if err := r.settle(t, stream.Range{From: at(12), To: at(13)}); err != nil {
		t.Fatal(err)
	}
	want := []string{"final far/1 -", "matched in/1 late/1"}
	if err := r.is(t, want, open[:1]); err != nil {
		t.Error(err)
	}
}
