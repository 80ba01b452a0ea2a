package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// numbers is a source of records 1 to end; a position is the number just read. It counts what is
// read of it and notices two users at once.
type numbers struct {
	end  atomic.Int64
	fail func(next int) error

	inUse               atomic.Bool
	at                  int
	open, bounded       bool
	bound               int
	reads, given, opens int
	closed              int
}

func newNumbers(end int64) *numbers {
	n := &numbers{}
	n.end.Store(end)
	return n
}

func (n *numbers) alone() (release func()) {
	if !n.inUse.CompareAndSwap(false, true) {
		panic("two goroutines use the source at once")
	}
	return func() { n.inUse.Store(false) }
}

func (n *numbers) Partition() stream.Partition { return stream.Partition{Source: "numbers"} }

func (n *numbers) Open(_ context.Context, position, identity string) (string, error) {
	defer n.alone()()
	at, err := strconv.Atoi(cmp.Or(position, "0"))
	if err != nil || identity != "" && identity != "numbers" {
		return "", fmt.Errorf("%w: %q of %q", stream.ErrPositionLost, position, identity)
	}
	n.at, n.open = at, true
	n.opens++
	return "numbers", nil
}

func (n *numbers) Compare(_ context.Context, a, b string) (int, error) {
	defer n.alone()()
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)), nil
}

func (n *numbers) Read(ctx context.Context, limit int) ([]stream.Record, bool, error) {
	defer n.alone()()
	if !n.open {
		return nil, false, errors.New("it is not open")
	}
	n.reads++
	end := int(n.end.Load())
	if n.bounded {
		end = n.bound
	}
	var records []stream.Record
	for len(records) < limit && n.at < end {
		if n.fail != nil {
			if err := n.fail(n.at + 1); err != nil {
				n.open = false
				return nil, false, err
			}
		}
		n.at++
		records = append(records, stream.Record{Position: strconv.Itoa(n.at)})
	}
	n.given += len(records)
	return records, n.at == end, ctx.Err()
}

func (n *numbers) Bound(context.Context) error {
	defer n.alone()()
	if !n.open {
		return errors.New("it is not open")
	}
	n.bounded, n.bound = true, int(n.end.Load())
	return nil
}

func (n *numbers) Identity() string            { return "numbers" }
func (n *numbers) PollInterval() time.Duration { return time.Millisecond }
func (n *numbers) Seal()                       { defer n.alone()() }

func (n *numbers) Close() error {
	defer n.alone()()
	n.open = false
	n.closed++
	return nil
}

// readTo reads a view from after a position to some number, up to limit records at a time, and
// fails when a record is missing or comes twice.
func readTo(ctx context.Context, v *view, after, to, limit int) error {
	position, identity := "", ""
	if after > 0 {
		position, identity = strconv.Itoa(after), "numbers"
	}
	if _, err := v.Open(ctx, position, identity); err != nil {
		return err
	}
	for after < to {
		records, atEnd, err := v.Read(ctx, limit)
		if err != nil {
			return err
		}
		if len(records) > limit {
			return fmt.Errorf("%d records, limit %d", len(records), limit)
		}
		for _, r := range records {
			if after++; r.Position != strconv.Itoa(after) {
				return fmt.Errorf("got %s, want %d", r.Position, after)
			}
		}
		if atEnd && after < to {
			time.Sleep(time.Millisecond)
		}
	}
	return v.Close()
}

func TestHubReadsOnceForAll(t *testing.T) {
	t.Parallel()
	const end = 200_000
	source := newNumbers(end)
	h := newHub(source)
	views := make([]*view, 8)
	for i := range views {
		views[i] = h.view()
		h.await(views[i])
	}
	var group sync.WaitGroup
	for i, v := range views {
		group.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			if err := readTo(t.Context(), v, 0, end, chunkRecords); err != nil {
				t.Errorf("view %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if source.given != end || len(h.kept) != 0 || h.held != 0 {
		t.Errorf("%d records were read, want %d; %d are kept", source.given, end, h.held)
	}
	if source.open || h.close(t.Context()) != nil {
		t.Error("the source is open after the last view has closed")
	}
}

// TestHubAtRandom lets views come at random positions, go at random ones, fail and read at
// different speeds: each gets every record once, in order, and what is kept stays bounded.
func TestHubAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		source := newNumbers(1000)
		failing := errors.New("as it happens")
		failures := rng.IntN(4)
		source.fail = func(int) error {
			if failures > 0 && rng.IntN(3000) == 0 {
				failures--
				return failing
			}
			return nil
		}
		h := newHub(source)
		var group sync.WaitGroup
		for i := range 6 {
			mine := rand.New(rand.NewPCG(seed, uint64(100+i)))
			group.Go(func() {
				at := 0
				for range 5 {
					to := at + mine.IntN(40_000)
					source.end.Store(max(source.end.Load(), int64(to)))
					v := h.view()
					if err := readTo(t.Context(), v, at, to, 200+mine.IntN(3000)); err != nil &&
						!errors.Is(err, failing) {
						t.Errorf("seed %d: %v", seed, err)
					}
					if err := v.Close(); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
					if at = to; mine.IntN(3) == 0 {
						at = mine.IntN(to + 1)
					}
				}
			})
		}
		group.Wait()
		if h.held != 0 || len(h.views) != 0 {
			t.Errorf("seed %d: %d records are kept for %d views", seed, h.held, len(h.views))
		}
	}
}

func TestHubIsBounded(t *testing.T) {
	t.Parallel()
	h := newHub(newNumbers(1_000_000))
	fast, slow := h.view(), h.view()
	for _, v := range []*view{fast, slow} {
		if _, err := v.Open(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for {
		records, atEnd, err := fast.Read(t.Context(), chunkRecords)
		if err != nil {
			t.Fatal(err)
		}
		if got += len(records); len(records) == 0 && !atEnd {
			break // it is told to go on with other sources
		}
	}
	if got != hubRecordsMax {
		t.Errorf("%d records ahead of the slowest, want %d", got, hubRecordsMax)
	}
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	if records, _, err := fast.Read(t.Context(), chunkRecords); len(records) == 0 || err != nil {
		t.Errorf("after the slow view has gone: %d records, %v", len(records), err)
	}
}

func TestHubChecksEachPosition(t *testing.T) {
	t.Parallel()
	h := newHub(newNumbers(10_000))
	good := h.view()
	if _, err := good.Open(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	bad := h.view()
	if _, err := bad.Open(t.Context(), "50", "letters"); !errors.Is(err, stream.ErrPositionLost) {
		t.Errorf("a view of another source: %v, want ErrPositionLost", err)
	}
	if err := bad.Close(); err != nil {
		t.Fatal(err)
	}
	if records, _, err := good.Read(t.Context(), 10); len(records) != 10 || err != nil {
		t.Errorf("the others get %d records, %v", len(records), err)
	}
}

// BenchmarkHub compares one view with the source itself.
func BenchmarkHub(b *testing.B) {
	for _, through := range []string{"source", "view"} {
		b.Run(through, func(b *testing.B) {
			numbers := newNumbers(int64(b.N) * chunkRecords)
			var source Source = numbers
			if through == "view" {
				source = newHub(numbers).view()
			}
			if _, err := source.Open(b.Context(), "", ""); err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if records, _, err := source.Read(b.Context(), chunkRecords); err != nil ||
					len(records) != chunkRecords {
					b.Fatal(len(records), err)
				}
			}
		})
	}
}
