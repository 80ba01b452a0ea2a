package join_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

const (
	longEpochs    = 100
	longEpochSize = 1000
	longCache     = 1000
)

// TestMemoryIsBounded runs 100,000 events of as many keys over a state ten times the cache, with
// each epoch stored only after the next was joined. What is in memory stays within the cache and
// what the two epochs touched, and once everything has expired nothing is left at all.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const seed = 7
	l := newLongStream(seed)
	largest, buffered := join.Size{}, int64(0)
	for range longEpochs {
		delta := l.epoch(t, l.batch())
		size := l.state.Size()
		largest = join.Size{
			Rows: max(largest.Rows, size.Rows), Groups: max(largest.Groups, size.Groups),
			Timers: max(largest.Timers, size.Timers), Leaving: max(largest.Leaving, size.Leaving),
		}
		if size.Recent != size.Groups {
			t.Fatalf("seed %d: %d groups are listed, %d are held", seed, size.Recent, size.Groups)
		}
		buffered = max(buffered, delta.Counts.Buffered)
	}
	t.Logf("seed %d: buffered %d, in memory %+v", seed, buffered, largest)
	if buffered < 9*longCache {
		t.Errorf("seed %d: the state holds %d rows, too few for a cache of %d to matter", seed,
			buffered, longCache)
	}
	// An epoch adds its events and looks up about as many partners, and as many rows that close.
	const bound = longCache + 2*3*longEpochSize
	if largest.Rows > bound || largest.Groups > bound || largest.Timers > 2*bound+1024 ||
		largest.Leaving > bound {
		t.Errorf("seed %d: %+v in memory, more than %d", seed, largest, bound)
	}
	l.commit(t)
	if held := l.state.Held(); held > longCache {
		t.Errorf("seed %d: %d rows stay in memory with nothing in flight, cache %d", seed, held,
			longCache)
	}
	l.expireAll(t, seed)
}

// expireAll seals both sides and runs until nothing is left, in the store and in memory.
func (l *longStream) expireAll(t *testing.T, seed uint64) {
	t.Helper()
	b := &stream.Batch{Parts: l.parts()}
	for i := range b.Parts {
		b.Parts[i].Sealed = true
	}
	epochs := 0
	for first := true; first || l.state.Behind(); first = false {
		l.epoch(t, b)
		if epochs++; epochs > 1000 {
			t.Fatalf("seed %d: the watermark is still at %s", seed, l.state.Watermark())
		}
	}
	l.commit(t)
	if n := l.store.start.Buffered; n != 0 {
		t.Errorf("seed %d: %d rows are still buffered", seed, n)
	}
	if size := l.state.Size(); size != (join.Size{}) {
		t.Errorf("seed %d: %+v left in memory", seed, size)
	}
}

// TestCompleteMemoryAsksNothing: while every live row is in memory, and no id comes back that had a
// result, an epoch looks up nothing; otherwise what may be stored.
func TestCompleteMemoryAsksNothing(t *testing.T) {
	t.Parallel()
	l := newLongStream(1)
	l.cfg.CacheRows, l.fresh = 1<<30, true
	l.state = join.New(l.cfg, l.store.start)
	for i := range 20 {
		b := l.batch()
		if n := l.state.Needs(b); !n.Empty() {
			t.Fatalf("epoch %d looks up ids %d and %d, keys %d, ranges %v", i+1,
				len(n.IDs[stream.Left]), len(n.IDs[stream.Right]), len(n.Keys), n.Due)
		}
		l.epoch(t, b)
	}
	// With nothing in memory the same state has to ask: for all while it doesn't know what is stored, and
	// then for what may be, which no fresh id is.
	l.commit(t)
	b := l.batch()
	start := l.store.start
	start.Spilled = true
	state := join.New(l.cfg, start)
	n := state.Needs(b)
	all := len(n.IDs[stream.Left]) + len(n.IDs[stream.Right])
	keys := len(n.Keys)
	if keys == 0 || all != b.Records() || len(n.Due) == 0 {
		t.Errorf("looks up ids %d of %d, keys %d, ranges %v", all, b.Records(), keys, n.Due)
	}
	state.Know(l.store.seen(true))
	n = state.Needs(b)
	some := len(n.IDs[stream.Left]) + len(n.IDs[stream.Right])
	if len(n.Keys) == 0 || len(n.Keys) >= keys || some > all/20 || len(n.Due) == 0 {
		t.Errorf("knowing what is stored it looks up ids %d of %d, keys %d of %d, ranges %v", some, all,
			len(n.Keys), keys, n.Due)
	}
}

// longStream makes events a millisecond apart, whose partners come some seconds later, and drives
// a state with them.
type longStream struct {
	cfg      join.Config
	store    *memStore
	state    *join.State
	inFlight *stream.Delta
	rng      *rand.Rand
	made     int
	// fresh leaves out what comes back under a known id.
	fresh bool
	ends  [2]int
}

func newLongStream(seed uint64) *longStream {
	cfg := join.Config{
		Rule: join.Rule{
			Version: "v1", Kind: join.Full, Provisional: join.AtWindowClose,
			Before: 4 * time.Second, After: 4 * time.Second, Lateness: 6 * time.Second,
		},
		MaxAhead: 24 * time.Hour, MaxSkew: 24 * time.Hour, MaxPairsPerKey: 1000,
		CacheRows: longCache, ClosingsMax: 2 * longEpochSize,
	}
	store := newMemStore()
	return &longStream{
		cfg: cfg, store: store, state: join.New(cfg, store.start),
		rng: rand.New(rand.NewPCG(seed, 0)),
	}
}

func (l *longStream) parts() []stream.Part {
	var parts []stream.Part
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		parts = append(parts, stream.Part{
			Partition: stream.Partition{Side: side, Source: side.String()},
			To:        strconv.Itoa(l.ends[side]),
		})
	}
	return parts
}

func (l *longStream) batch() *stream.Batch {
	parts := l.parts()
	for range longEpochSize {
		side := stream.Side(l.made % 2)
		l.made++
		l.ends[side]++
		parts[side].To = strconv.Itoa(l.ends[side])
		parts[side].Records = append(parts[side].Records, stream.Record{
			Event: l.event(side, l.made), Position: parts[side].To,
		})
	}
	return &stream.Batch{Clock: base, Parts: parts}
}

// event makes the nth event. Left event n has key n, the right event that is up to three seconds
// later has the key of an earlier left one; 1 in 20 revises an earlier event of its side, 1 in 60
// deletes one, with or without a time.
func (l *longStream) event(side stream.Side, n int) stream.Event {
	e := stream.Event{
		ID: strconv.Itoa(n), Revision: 1, Key: "k" + strconv.Itoa(n), Attributes: "{}",
		Time: base.Add(time.Duration(n) * time.Millisecond), HasTime: true,
	}
	if side == stream.Right {
		e.Key = "k" + strconv.Itoa(max(1, (n-l.rng.IntN(3000))|1))
	}
	if l.fresh || n < longEpochSize {
		return e
	}
	switch known := strconv.Itoa(n - 2*(1+l.rng.IntN(2500))); {
	case l.rng.IntN(20) == 0:
		e.ID, e.Revision = known, int64(n)
	case l.rng.IntN(60) == 0:
		e.ID, e.Revision, e.Deleted = known, int64(n), true
		if l.rng.IntN(2) == 0 {
			e.Key, e.Time, e.HasTime = "", 0, false
		}
	}
	return e
}

// epoch joins a batch and then stores the epoch before it.
func (l *longStream) epoch(t *testing.T, b *stream.Batch) *stream.Delta {
	t.Helper()
	if l.state.MustSpill() {
		l.commit(t)
		l.store.spill()
		l.state.Spill()
	}
	needs := l.state.Needs(b)
	found := &stream.Found{}
	if !needs.Empty() {
		found = l.store.fetch(needs, l.state.Watermark())
	}
	delta := l.state.Step(b, found)
	l.commit(t)
	l.inFlight = delta
	return delta
}

func (l *longStream) commit(t *testing.T) {
	t.Helper()
	if l.inFlight == nil {
		return
	}
	if err := l.store.commit(l.inFlight); err != nil {
		t.Fatal(err)
	}
	l.state.Committed(l.inFlight.Epoch)
	l.inFlight = nil
}
