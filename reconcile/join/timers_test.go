package join

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestTimersComeUpInOrder pushes and pops at random beside a sorted list.
func TestTimersComeUpInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var heap timers
		var model []stream.Micros
		for range 500 {
			if len(model) > 0 && rng.IntN(5) < 2 {
				if got := heap.pop().at; got != model[0] {
					t.Fatalf("seed %d: popped %d, want %d", seed, got, model[0])
				}
				model = model[1:]
				continue
			}
			at := stream.Micros(rng.IntN(40) - 20)
			if rng.IntN(20) == 0 {
				at = []stream.Micros{stream.NegInfinity, stream.Infinity}[rng.IntN(2)]
			}
			heap.push(timer{at: at, row: &row{}})
			place, _ := slices.BinarySearch(model, at)
			model = slices.Insert(model, place, at)
		}
		for _, want := range model {
			if got := heap.pop().at; got != want {
				t.Fatalf("seed %d: popped %d, want %d", seed, got, want)
			}
		}
		if len(heap) != 0 {
			t.Fatalf("seed %d: %d timers are left over", seed, len(heap))
		}
	}
}

// TestCompactKeepsLiveTimers drops the timers of rows that are not live, and no other.
func TestCompactKeepsLiveTimers(t *testing.T) {
	t.Parallel()
	var heap timers
	var want []stream.Micros
	for i := range 100 {
		at := stream.Micros(i * 37 % 101)
		r := &row{phase: phase(i % 5)}
		if r.phase == live {
			want = append(want, at)
		}
		heap.push(timer{at: at, row: r})
	}
	slices.Sort(want)
	heap.compact()
	var got []stream.Micros
	for len(heap) > 0 {
		got = append(got, heap.pop().at)
	}
	if !slices.Equal(got, want) {
		t.Errorf("timers of live rows %v, want %v", got, want)
	}
}

// TestPoppedTimersHoldNoRow: what was popped must not keep its row from being freed.
func TestPoppedTimersHoldNoRow(t *testing.T) {
	t.Parallel()
	heap := make(timers, 0, 8)
	for i := range 8 {
		heap.push(timer{at: stream.Micros(i), row: &row{}})
	}
	for len(heap) > 3 {
		heap.pop()
	}
	for i, left := range heap[:8][len(heap):] {
		if left.row != nil {
			t.Errorf("slot %d past the heap's end still holds a row", i)
		}
	}
}
