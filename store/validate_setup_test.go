package store_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
)

// contest is a base that serves and a candidate, each of one shard.
type contest struct {
	*bundle
	candidate int32
}

// The events of a contest: e1 and e2 have two halves, of e3 and e4 one is missing. Horizons are ten
// seconds after the times.
func leftRow(n int, key string) stream.BufferRow  { return half(stream.Left, n, 2*n+8, key) }
func rightRow(n int, key string) stream.BufferRow { return half(stream.Right, n, 2*n+9, key) }

func half(side stream.Side, n, at int, key string) stream.BufferRow {
	id := fmt.Sprintf("%c%d", side.String()[0], n)
	return row(side, event(id, key, at), stream.Micros(at+10)*tick, 1)
}

// stand is where a generation stands: its rows and results, at one watermark and position.
type stand struct {
	watermark   int
	position    string
	left, right []stream.BufferRow
	results     []stream.Result
	late        []stream.Event
	noRight     bool
}

// usual gives the stand of both generations of a contest that are equal: two pairs with horizons 21
// and 23, two rows that are final with horizons 24 and 27.
func usual() *stand {
	l1, r1, l2, r2 := leftRow(1, "k1"), rightRow(1, "k1"), leftRow(2, "k2"), rightRow(2, "k2")
	l3, r4 := leftRow(3, "k3"), rightRow(4, "k4")
	return &stand{
		watermark: 30, position: "900",
		left: []stream.BufferRow{l1, l2, l3}, right: []stream.BufferRow{r1, r2, r4},
		results: []stream.Result{
			pair(l1, r1), pair(l2, r2), only(l3, stream.Final), only(r4, stream.Final),
		},
	}
}

// without takes the results away in which an event is.
func (s *stand) without(ids ...string) *stand {
	s.results = slices.DeleteFunc(s.results, func(r stream.Result) bool {
		return slices.Contains(ids, r.Left.ID) || slices.Contains(ids, r.Right.ID)
	})
	return s
}

func (s *stand) with(results ...stream.Result) *stand {
	s.results = append(s.results, results...)
	return s
}

// change changes the results in which an event is.
func (s *stand) change(id string, do func(*stream.Result)) *stand {
	for i := range s.results {
		if s.results[i].Left.ID == id || s.results[i].Right.ID == id {
			do(&s.results[i])
		}
	}
	return s
}

// epochs gives one epoch that takes the rows and one that moves the watermark.
func (s *stand) epochs() (*stream.Delta, *stream.Delta) {
	first, moved := delta(1), delta(2)
	first.Added = slices.Concat(s.left, s.right)
	first.WatermarkBefore, first.WatermarkAfter = stream.NegInfinity, tick
	n := int64(len(first.Added))
	first.Counts = stream.Counts{Read: n, Accepted: n, Buffered: n}
	moved.WatermarkBefore, moved.WatermarkAfter = tick, stream.Micros(s.watermark)*tick
	for i := range first.Added {
		if r := &first.Added[i]; r.Horizon < moved.WatermarkAfter {
			moved.Expired = append(moved.Expired, r)
		}
	}
	for _, r := range s.results {
		moved.Changes = append(moved.Changes, fresh(r, stream.CauseJoined))
		moved.Counts.Count(r.Status)
	}
	for _, e := range s.late {
		moved.Corrections = append(moved.Corrections, stream.Correction{
			Partition: stream.Partition{Side: stream.Right, Source: "csv"},
			Event:     e, Position: "7", Reason: stream.PastHorizon, To: stream.Infinity,
		})
	}
	moved.Counts.Read, moved.Counts.Late = int64(len(s.late)), int64(len(s.late))
	moved.Counts.Expired = int64(len(moved.Expired))
	moved.Counts.Buffered = n - moved.Counts.Expired
	first.Progress, moved.Progress = s.progress(first, ""), s.progress(moved, "5")
	return first, moved
}

func (s *stand) progress(d *stream.Delta, from string) []stream.Progress {
	list := []stream.Progress{{
		Partition: stream.Partition{Side: stream.Left, Source: "file", Number: 3},
	}, {
		Partition: stream.Partition{Side: stream.Right, Source: "csv"},
	}}
	if s.noRight {
		list = list[:1]
	}
	for i := range list {
		p := &list[i]
		p.From, p.To = from, s.position
		if d.Epoch == 1 {
			p.To = "5"
		}
		p.Watermark, p.LastEventAt, p.Identity = d.WatermarkAfter, d.Clock, "head"
	}
	return list
}

// setupContest gives a base and a candidate at these stands. A nil one has committed nothing.
func setupContest(t testing.TB, base, candidate *stand) *contest {
	t.Helper()
	db := testenv.DB(t)
	c := &contest{bundle: &bundle{db: db, Store: open(t, db, nil)}}
	c.generation = c.register(t, "payments", 1)
	c.candidate = c.register(t, "candidate", 1)
	c.exec(t, `delete from SCHEMA.serving where generation_id = $1`, c.candidate)
	c.exec(t, `update SCHEMA.generation set status = 'candidate', reconciliation = 'payments',
		base = $2, catch_up = '{"watermark": "1970-01-01T00:20:00Z", "partitions": []}'
		where generation_id = $1`, c.candidate, c.generation)
	for generation, s := range map[int32]*stand{c.generation: base, c.candidate: candidate} {
		h, err := c.Take(t.Context(), generation, 0, "host/1")
		if err != nil {
			t.Fatal(err)
		}
		if s != nil {
			first, second := s.epochs()
			commit(t, h, first, second)
		}
	}
	return c
}

// exec runs a statement on the schema that SCHEMA stands for.
func (c *contest) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	sql = strings.ReplaceAll(sql, "SCHEMA", pgx.Identifier{c.db.Schema}.Sanitize())
	if _, err := c.db.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// pass puts a comparison on record that nothing was wrong with.
func (c *contest) pass(t testing.TB) {
	t.Helper()
	c.exec(t, `insert into SCHEMA.validation (generation_id, number, base, scope, passed, only_base,
		only_candidate, in_both, explained, unexplained, totals, differences)
		values ($1, 1, $2, 'all', true, 0, 0, 0, 0, 0, '[]', '[]')`, c.candidate, c.generation)
}

func (c *contest) validate(t testing.TB) store.Comparison {
	t.Helper()
	got, err := c.Validate(t.Context(), c.candidate)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// rule2 gives a result the identity that another rule version gives it.
func rule2(r stream.Result) stream.Result {
	r.MatchID = sha256.Sum256(r.MatchID[:])
	return r
}

// hold adds rows to those that the stand has read.
func (s *stand) hold(rows ...stream.BufferRow) *stand {
	s.right = append(s.right, rows...)
	return s
}

// set sets events aside as corrections.
func (s *stand) set(late ...stream.Event) *stand {
	s.late = late
	return s
}

func (s *stand) at(watermark int) *stand {
	s.watermark = watermark
	return s
}

func (s *stand) read(position string) *stand {
	s.position = position
	return s
}

// wait makes the row of an event provisional.
func (s *stand) wait(id string) *stand {
	return s.change(id, func(r *stream.Result) { r.Status = stream.Provisional })
}

// lacking is the stand without its right source.
func (s *stand) lacking() *stand {
	s.noRight, s.right = true, nil
	s.results = nil
	for _, l := range s.left {
		s.results = append(s.results, only(l, stream.Final))
	}
	return s
}

// forget drops rows, as if their events had never been read.
func (s *stand) forget(ids ...string) *stand {
	gone := func(r stream.BufferRow) bool { return slices.Contains(ids, r.ID) }
	s.left, s.right = slices.DeleteFunc(s.left, gone), slices.DeleteFunc(s.right, gone)
	return s
}

// again gives all results the identities of another rule version.
func (s *stand) again() *stand {
	for i := range s.results {
		s.results[i] = rule2(s.results[i])
	}
	return s
}

// interval makes the candidate one of ticks [12, 13), with a window of a tick: results with a time in
// [11, 14).
const interval = `update SCHEMA.generation set kind = 'interval',
	interval_from = to_timestamp(12 * 600), interval_to = to_timestamp(13 * 600),
	rule = '{"join": "full", "before_us": 0, "after_us": 600000000}'`

const otherRule = `update SCHEMA.generation set rule_version = 'v2', rule = '{"join": "full"}'
	where status = 'candidate'`
