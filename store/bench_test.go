package store_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// workload makes epochs of the shape of quality's workload: one partner each, 1 event in 20
// revised, keys in random order, attributes of about 100 bytes.
type workload struct {
	random *rand.Rand
	events int
	epoch  int64
	number int
	before []stream.BufferRow // left rows of the epoch before, which this one revises
}

func newWorkload(events int) *workload {
	return &workload{random: rand.New(rand.NewPCG(1, 2)), events: events}
}

func (w *workload) next() *stream.Delta {
	w.epoch++
	d := delta(w.epoch)
	d.Counts.Buffered = 1
	revised := w.before[:min(len(w.before), w.events/20)]
	for _, old := range revised {
		replaced := old
		d.Retired = append(d.Retired, &replaced)
		right := old
		right.ID = "r" + old.ID[1:]
		d.Changes = append(d.Changes, moved(w.pair(old, right), stream.Superseded,
			stream.CauseRevised))
		old.Revision++
		old.AddedEpoch = w.epoch
		d.Added = append(d.Added, old)
		d.Changes = append(d.Changes, fresh(w.pair(old, right), stream.CauseJoined))
	}
	w.before = w.before[:0]
	for range (w.events - len(revised)) / 2 {
		left, right := w.row(stream.Left), w.row(stream.Right)
		right.Key = left.Key
		d.Added = append(d.Added, left, right)
		d.Changes = append(d.Changes, fresh(w.pair(left, right), stream.CauseJoined))
		w.before = append(w.before, left)
		w.number++
	}
	return d
}

func (w *workload) row(side stream.Side) stream.BufferRow {
	return stream.BufferRow{
		Side: side, Horizon: stream.Micros(w.number) * 1000, Source: "payments", Number: 0,
		Position: fmt.Sprint(w.number * 173), AddedEpoch: w.epoch,
		Event: stream.Event{
			ID: fmt.Sprintf("%c-%010d", side.String()[0], w.number), Revision: 1,
			Key:  fmt.Sprintf("acct-%08d", w.random.IntN(100_000_000)),
			Time: stream.Micros(w.number) * 1000, HasTime: true,
			Attributes: fmt.Sprintf(`{"amount":"%d.25","currency":"EUR","country":"DE",`+
				`"channel":"card","reference":"0123456789abcdef"}`, w.random.IntN(100_000)),
		},
	}
}

func (w *workload) pair(left, right stream.BufferRow) stream.Result {
	r := pair(left, right)
	r.MatchID = sha256.Sum256(fmt.Appendf(nil, "%s|%d|%s", left.ID, left.Revision, right.ID))
	r.Verdict, r.Differences = "agree", ""
	return r
}

// BenchmarkCommit commits epochs, and encodes one. tally bench compares with COPY alone.
func BenchmarkCommit(b *testing.B) {
	for _, events := range []int{100, 2000, 20000} {
		b.Run(fmt.Sprintf("commit/%d", events), func(b *testing.B) { benchCommit(b, events) })
		b.Run(fmt.Sprintf("encode/%d", events), func(b *testing.B) { benchEncode(b, events) })
	}
}

func benchCommit(b *testing.B, events int) {
	s, w := setup(b), newWorkload(events)
	var writing time.Duration
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		d := w.next()
		b.StartTimer()
		began := time.Now()
		e := s.shard.Encode(d)
		if err := s.shard.Commit(b.Context(), e); err != nil {
			b.Fatal(err)
		}
		writing += time.Since(began)
	}
	b.ReportMetric(float64(events*b.N)/writing.Seconds(), "events/s")
}

func benchEncode(b *testing.B, events int) {
	s, w := setup(b), newWorkload(events)
	w.next()
	d := w.next()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s.shard.Encode(d).Recycle()
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}
