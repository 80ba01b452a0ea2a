package store_test

import (
	"reflect"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestTheNextAttemptGoesOnFromTheCommit reads back what an epoch says of sources and transitions.
func TestTheNextAttemptGoesOnFromTheCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	left := row(stream.Left, event("l1", "k1", 5), 100*tick, 1)
	right := row(stream.Right, event("r1", "k1", 6), 90*tick, 2)
	first, next := delta(1), delta(2)
	first.Added = []stream.BufferRow{left}
	first.Changes = []stream.Change{fresh(only(left, stream.Provisional), stream.CauseUnmatched)}
	next.Added = []stream.BufferRow{right}
	next.Changes = []stream.Change{
		moved(only(left, stream.Provisional), stream.Retracted, stream.CausePartnerArrived),
		fresh(pair(left, right), stream.CauseJoined),
	}
	commit(t, b.shard, first, next)

	state := b.take(t, b.Store).State
	want := next.Progress[0]
	want.From = state.Progress[0].From // how far the last epoch had found it is history
	if state.Epoch != 2 || state.Watermark != 2*tick || state.Buffered != next.Counts.Buffered {
		t.Errorf("the next attempt begins at %+v", state)
	}
	if !reflect.DeepEqual(state.Progress, []stream.Progress{want}) {
		t.Errorf("it reads on from %+v, want %+v", state.Progress, want)
	}
	var history string
	err := b.db.Pool.QueryRow(t.Context(), `select string_agg(concat_ws(' ', epoch, ordinal,
		from_status, to_status, reason), ', ' order by epoch, ordinal)
		from tally.match_transition`).Scan(&history)
	wantHistory := "1 0 provisional unmatched, 2 0 provisional retracted partner_arrived, " +
		"2 1 matched joined"
	if err != nil || history != wantHistory {
		t.Errorf("transitions are %q (%v), want %q", history, err, wantHistory)
	}
}
