package store_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

func wantRows(t testing.TB, got []stream.BufferRow, want ...stream.BufferRow) {
	t.Helper()
	order := func(a, b stream.BufferRow) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.ID, b.ID))
	}
	wantList(t, "rows", got, want, order)
}

func wantResults(t testing.TB, got []stream.Result, want ...stream.Result) {
	t.Helper()
	wantList(t, "results", got, want, func(a, b stream.Result) int {
		return bytes.Compare(a.MatchID[:], b.MatchID[:])
	})
}

func wantList[T comparable](t testing.TB, what string, got, want []T, order func(a, b T) int) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, lines(got), lines(want))
	}
}

func lines[T any](list []T) string {
	var b strings.Builder
	for _, v := range list {
		fmt.Fprintf(&b, "\n  %+v", v)
	}
	return b.String()
}

func wantSame(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the tables differ:\n got\n%s\nwant\n%s", got, want)
	}
}

// dump gives the contents of every table that an epoch writes, without what differs from run to
// run: attempts, tokens and times of the clock.
func (b *bundle) dump(t testing.TB) string { return b.dumpOf(t, b.generation) }

func (b *bundle) dumpOf(t testing.TB, generation int32) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []string{
		"shard", "buffer", "match", "match_transition", "correction", "quarantine",
		"source_offset", "epoch",
	} {
		sql := fmt.Sprintf(`select coalesce(string_agg(j::text, E'\n' order by j::text), '')
			from (select to_jsonb(x) - array['attempt_id', 'fencing_token', 'worker',
				'lease_until', 'requested_by', 'started_at', 'committed_at', 'released_at', 'generation_id', 'row_hash',
				'buffer_digest', 'output_digest', 'parent_digest', 'digest'] as j
			from %s x where generation_id = $1) y`,
			pgx.Identifier{b.db.Schema, table}.Sanitize())
		var text string
		if err := b.db.Pool.QueryRow(t.Context(), sql, generation).Scan(&text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "== %s\n%s\n", table, text)
	}
	return out.String()
}

// busyDelta gives an epoch that writes to every table: epoch 2 moves what epoch 1 wrote.
func busyDelta(epoch int64) *stream.Delta {
	d := delta(epoch)
	left := row(stream.Left, event(fmt.Sprint("l", epoch), "k1", 5), 100*tick, epoch)
	right := row(stream.Right, event(fmt.Sprint("r", epoch), "k1", 6), 90*tick, epoch)
	lone := row(stream.Left, event(fmt.Sprint("m", epoch), "k2", 7), 80*tick, epoch)
	d.Added = []stream.BufferRow{left, right, lone}
	if epoch > 1 {
		id := fmt.Sprint("m", epoch-1)
		old := row(stream.Left, event(id, "k2", 7), 80*tick, epoch-1)
		d.Retired = []*stream.BufferRow{&old}
		d.Changes = []stream.Change{
			moved(only(old, stream.Provisional), stream.Superseded, stream.CauseRevised),
		}
	}
	d.Changes = append(d.Changes,
		fresh(pair(left, right), stream.CauseJoined),
		fresh(only(lone, stream.Provisional), stream.CauseUnmatched))
	from := stream.Partition{Side: stream.Right, Source: "csv", Number: 1}
	d.Corrections = []stream.Correction{{
		Partition: from, Event: event("late", "k9", 1), Position: "77", Reason: stream.PastHorizon,
		From: stream.NegInfinity, To: 9 * tick,
	}, {
		Partition: from, Event: stream.Event{ID: "gone", Revision: 2, Deleted: true},
		Position: "78", Reason: stream.SealedRevision, From: 8 * tick, To: stream.Infinity,
	}}
	d.Quarantined = []stream.Quarantined{{
		Partition: from, Position: "79", Reason: stream.NotJSON, Raw: []byte("\x00\xff{"),
	}}
	d.Counts = stream.Counts{
		Read: 17, Accepted: 3, Duplicate: 2, Stale: 3, Late: 2, Quarantined: 1, OutOfShard: 6,
		Ahead: 1, Paired: 1, ProvisionalOpened: 1, Superseded: int64(len(d.Retired)),
		Buffered: 1 + 2*epoch,
	}
	return d
}
