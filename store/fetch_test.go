package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// TestFetch has three keys: k1 with a pair whose left member l1 has left the buffer and is paired
// with r0, gone as well; k2 with a lone row; and rows without a key.
func TestFetch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l1 := row(stream.Left, event("l1", "k1", 1), 5*tick, 1)
	r0 := row(stream.Right, event("r0", "k1", 1), 4*tick, 1)
	r1 := row(stream.Right, event("r1", "k1", 6), 50*tick, 1)
	l2 := row(stream.Left, event("l2", "k2", 7), 20*tick, 1)
	old := row(stream.Left, event("l3", "k2", 7), 20*tick, 1)
	l3 := row(stream.Left, event("l3", "k2", 8), 21*tick, 2)
	l3.Revision = 2
	x1 := row(stream.Left, stream.Event{ID: "x1", Revision: 1, Deleted: true, Attributes: "{}"},
		22*tick, 1)
	x2 := row(stream.Right, stream.Event{ID: "x1", Revision: 1, Deleted: true, Attributes: "{}"},
		stream.Infinity, 1)
	first := delta(1)
	first.Added = []stream.BufferRow{l1, r0, r1, l2, old, x1, x2}
	first.Changes = []stream.Change{
		fresh(pair(l1, r0), stream.CauseJoined), fresh(pair(l1, r1), stream.CauseJoined),
		fresh(only(l2, stream.Provisional), stream.CauseUnmatched),
		fresh(only(old, stream.Provisional), stream.CauseUnmatched),
	}
	second2 := delta(2)
	second2.Added = []stream.BufferRow{l3}
	second2.Retired = []*stream.BufferRow{&old}
	second2.Changes = []stream.Change{
		moved(only(old, stream.Provisional), stream.Superseded, stream.CauseRevised),
	}
	commit(t, b.shard, first, second2)
	if err := b.shard.Spill(t.Context(), stream.NegInfinity); err != nil {
		t.Fatal(err)
	}
	ghosts := []stream.Result{pair(l1, r0), pair(l1, r1)}
	lone := only(l2, stream.Provisional)

	ids := func(left, right []string) stream.Needs {
		return stream.Needs{IDs: [2][]string{left, right}}
	}
	due := func(limit int, ranges ...stream.Range) stream.Needs {
		return stream.Needs{Due: ranges, DueMax: limit, Keeps: [2]bool{true, true}}
	}
	for _, c := range []struct {
		name    string
		needs   stream.Needs
		rows    []stream.BufferRow
		results []stream.Result
		dueTo   []stream.Micros
		expired []stream.BufferRow
	}{
		{name: "nothing"},
		{
			"a key with ghosts",
			stream.Needs{Keys: []string{"k1"}},
			[]stream.BufferRow{r1},
			ghosts, nil, nil,
		},
		{
			"an id brings its key", ids([]string{"l2"}, nil),
			[]stream.BufferRow{l2, l3},
			[]stream.Result{lone},
			nil, nil,
		},
		{"a sealed id has results only", ids([]string{"l1"}, nil), nil, ghosts, nil, nil},
		{"the partner's other partner", ids(nil, []string{"r0"}), nil, ghosts, nil, nil},
		{"sides are apart", ids(nil, []string{"l2", "x1"}), []stream.BufferRow{x2}, nil, nil, nil},
		{
			"no duplicates",
			stream.Needs{
				IDs: [2][]string{{"l2", "l3", "x1"}, {"r1"}}, Keys: []string{"k1", "k2"},
				Due: []stream.Range{{From: 0, To: 30 * tick}}, DueMax: 10, Keeps: [2]bool{true, false},
			},
			[]stream.BufferRow{r1, l2, l3, x1},
			append(ghosts, lone),
			[]stream.Micros{30 * tick},
			[]stream.BufferRow{x1},
		},
		{
			"due is half open", due(10, stream.Range{From: 20 * tick, To: 21 * tick}),
			[]stream.BufferRow{l2, l3},
			[]stream.Result{lone},
			[]stream.Micros{21 * tick},
			nil,
		},
		{
			"a side that keeps nothing",
			stream.Needs{
				Due: []stream.Range{{From: 20 * tick, To: 22 * tick}}, DueMax: 10,
				Keeps: [2]bool{false, true},
			},
			nil, nil,
			[]stream.Micros{22 * tick},
			[]stream.BufferRow{l2, l3},
		},
		{
			"a window that closes over a result", due(10, stream.Range{},
				stream.Range{From: 20 * tick, To: 21 * tick}),
			nil, nil,
			[]stream.Micros{0, 21 * tick},
			nil,
		},
		{
			"a window that closes over nothing", due(10, stream.Range{},
				stream.Range{From: 21 * tick, To: 22 * tick}),
			[]stream.BufferRow{l2, l3},
			[]stream.Result{lone},
			[]stream.Micros{0, 22 * tick},
			nil,
		},
		{
			"due is cut", due(1, stream.Range{From: stream.NegInfinity, To: stream.Infinity},
				stream.Range{From: 22 * tick, To: 23 * tick}, stream.Range{From: 0, To: 1}),
			[]stream.BufferRow{l2, l3},
			[]stream.Result{lone},
			[]stream.Micros{20*tick + 1, 22*tick + 1, 1},
			nil,
		},
		{
			"due to infinity", due(10, stream.Range{From: 22*tick + 1, To: stream.Infinity}),
			nil, nil,
			[]stream.Micros{stream.Infinity},
			[]stream.BufferRow{r1},
		},
	} {
		found, clock, err := b.shard.Fetch(t.Context(), c.needs, 10*tick)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if clock < 1_700_000_000_000_000 {
			t.Errorf("%s: the clock says %s", c.name, clock)
		}
		t.Log(c.name)
		wantRows(t, found.Rows, c.rows...)
		wantResults(t, found.Results, c.results...)
		wantRows(t, found.Expired, c.expired...)
		if !slices.Equal(found.DueTo, c.dueTo) {
			t.Errorf("%s: due to %v, want %v", c.name, found.DueTo, c.dueTo)
		}
	}
	found, err := b.shard.Load(t.Context(), 10*tick)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, found.Rows, r1, l2, l3, x1, x2)
	wantResults(t, found.Results, append(ghosts, lone)...)
}

// TestFetchFindsWhatWasWithdrawnByHand: an event whose result was withdrawn by hand is not one
// without a result.
func TestFetchFindsWhatWasWithdrawnByHand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	needs := stream.Needs{Results: [2][]string{{"l1"}, nil}}
	found, _, err := b.shard.Fetch(t.Context(), needs, 2*tick)
	if err != nil || len(found.Results) != 1 {
		t.Fatalf("%d results, %v", len(found.Results), err)
	}
	b.exec(t, "update tally.match set status = 'superseded' where left_id = 'l1'")
	if _, _, err := b.shard.Fetch(t.Context(), needs, 2*tick); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("fetch: %v", err)
	}
}

// TestBufferNames wants the ids and keys of all rows that wait, and of no row that was replaced.
func TestBufferNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	found, err := b.shard.Load(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for i := range found.Rows {
		r := &found.Rows[i]
		want = append(want, fmt.Sprint(r.Side, " ", r.ID, " ", r.Key))
	}
	err = b.shard.BufferNames(t.Context(), func(side stream.Side, id, key string) {
		got = append(got, fmt.Sprint(side, " ", id, " ", key))
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
