package workload

import (
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// queue is a heap of events by arrival, then by the order in which they were queued. What moves in
// the heap are small tickets; the events stay in their slots.
type queue struct {
	heap  []ticket
	slots []pending
	free  []uint32
	count uint32
}

// ticket is one event's place in the order.
type ticket struct {
	arrival stream.Micros
	order   uint32
	slot    uint32
}

func (t ticket) before(o ticket) bool {
	if t.arrival != o.arrival {
		return t.arrival < o.arrival
	}
	return t.order < o.order
}

func (q *queue) empty() bool { return len(q.heap) == 0 }

// first gives the arrival of the next event.
func (q *queue) first() stream.Micros { return q.heap[0].arrival }

func (q *queue) push(p pending) {
	t := ticket{arrival: p.Arrival, order: q.count, slot: uint32(len(q.slots))}
	q.count++
	if last := len(q.free) - 1; last >= 0 {
		t.slot, q.free = q.free[last], q.free[:last]
		q.slots[t.slot] = p
	} else {
		q.slots = append(q.slots, p)
	}
	q.heap = append(q.heap, t)
	i := len(q.heap) - 1
	for i > 0 && t.before(q.heap[(i-1)/2]) {
		q.heap[i] = q.heap[(i-1)/2]
		i = (i - 1) / 2
	}
	q.heap[i] = t
}

func (q *queue) pop() pending {
	top, last := q.heap[0], len(q.heap)-1
	t := q.heap[last]
	q.heap = q.heap[:last]
	i := 0
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && q.heap[child+1].before(q.heap[child]) {
			child++
		}
		if !q.heap[child].before(t) {
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	if last > 0 {
		q.heap[i] = t
	}
	q.free = append(q.free, top.slot)
	return q.slots[top.slot]
}

// chance is a small generator of random numbers (SplitMix64) that starts from any three numbers,
// so that each event has its own and both sides agree on what they share.
type chance uint64

func newChance(seed, purpose, number uint64) chance {
	return chance(mix(mix(mix(seed)+purpose) + number))
}

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	return mix(uint64(*c))
}

// hit is true with the given probability.
func (c *chance) hit(share float64) bool { return float64(c.next()>>11) < share*(1<<53) }

// within gives a duration from low up to high, in whole microseconds.
func (c *chance) within(low, high time.Duration) time.Duration {
	span := uint64((high - low) / time.Microsecond)
	return low + time.Duration(c.next()%(span+1))*time.Microsecond
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
