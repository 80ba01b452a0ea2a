package oracle

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Generate makes the history of a seed: few ids and keys, so that everything collides; revisions
// in and out of order, tombstones and revivals, duplicates, times on the window bounds, on the
// watermark and one microsecond beside, disorder within and (adversarial) beyond what is allowed.
func Generate(seed uint64, flavour Flavour) *History {
	g := newGenerator(seed, flavour)
	h, wanted := g.h, 20+g.rng.IntN(131)
	for attempts := 0; len(h.turns) < wanted && attempts < 8*wanted; attempts++ {
		g.now = g.now.Add(g.upTo(g.pace))
		if g.oneIn(60) && flavour == Adversarial {
			g.malformed()
			continue
		}
		e := g.event()
		if flavour == Adversarial || g.admissible(e) {
			g.keep(e)
		}
	}
	return h
}

type generator struct {
	h     *History
	rng   *rand.Rand
	now   stream.Micros
	pace  time.Duration
	ids   int
	keys  int
	quiet int
	made  []made
	// highest is the highest event time of each lane, without what is too far ahead to count.
	highest []stream.Micros
}

// made is an event with the lane it goes to.
type made struct {
	stream.Event
	side stream.Side
	lane int
	// bound is as far as the watermark can be in any split when the event is read: what its own
	// lane allows.
	bound stream.Micros
}

var generatorStart = stream.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func newGenerator(seed uint64, flavour Flavour) *generator {
	g := &generator{rng: rand.New(rand.NewPCG(seed, uint64(flavour))), now: generatorStart}
	g.pace = pick(g.rng, 0, 200*time.Millisecond, time.Second, time.Second, 5*time.Second)
	g.ids = pick(g.rng, 3, 8, 20, 60)
	g.keys = pick(g.rng, 1, 2, 5)
	g.h = &History{
		Seed: seed, Flavour: flavour, Rule: g.rule(), start: generatorStart,
		Sealed: flavour == Confluent || g.oneIn(2), SealEarly: g.oneIn(3),
	}
	if flavour == Confluent {
		g.h.start = caseClock
	}
	g.lanes()
	return g
}

func (g *generator) rule() Rule {
	lengths := []time.Duration{
		0, time.Microsecond, time.Second, 3 * time.Second, 10 * time.Second,
	}
	r := Rule{
		Version:     "v1",
		Join:        pick(g.rng, JoinInner, JoinLeft, JoinRight, JoinFull),
		Before:      pick(g.rng, lengths...),
		After:       pick(g.rng, lengths...),
		Lateness:    pick(g.rng, 0, 0, time.Second, 8*time.Second),
		Provisional: pick(g.rng, Eager, AtWindowClose, Never),
		MaxSkew:     10 * time.Second,
		MaxAhead:    time.Minute,
	}
	for s := range r.OutOfOrderness {
		r.OutOfOrderness[s] = pick(g.rng, 0, 0, time.Second, 5*time.Second)
	}
	return r
}

// lanes lays out one to three partitions a side over one or two sources, now and then one of them
// without any record.
func (g *generator) lanes() {
	for _, s := range []stream.Side{stream.Left, stream.Right} {
		sources := 1 + g.rng.IntN(2)
		for i := range 1 + g.rng.IntN(3) {
			p := stream.Partition{Side: s, Source: fmt.Sprintf("%s-%d", s, i*sources/3)}
			for _, lane := range g.h.Lanes {
				if lane.Side == s && lane.Source == p.Source {
					p.Number++
				}
			}
			g.h.Lanes = append(g.h.Lanes, Slice{Partition: p})
			g.highest = append(g.highest, stream.NegInfinity)
		}
	}
	if g.quiet = -1; g.oneIn(10) {
		g.quiet = g.rng.IntN(len(g.h.Lanes))
	}
}

// lane gives a lane of side s, mostly always the same for one number.
func (g *generator) lane(s stream.Side, number int) int {
	var lanes []int
	for i, lane := range g.h.Lanes {
		if lane.Side == s && i != g.quiet {
			lanes = append(lanes, i)
		}
	}
	switch {
	case len(lanes) == 0:
		g.quiet = -1
		return g.lane(s, number)
	case g.oneIn(6):
		return pick(g.rng, lanes...)
	}
	return lanes[number%len(lanes)]
}

func (g *generator) keep(e made) {
	e.bound = g.bound(e.lane)
	g.made = append(g.made, e)
	if e.HasTime && e.Time <= g.clock().Add(g.h.Rule.MaxSkew) {
		g.highest[e.lane] = max(g.highest[e.lane], e.Time)
	}
	g.append(e.lane, record(e.Event, len(g.h.Lanes[e.lane].Records)+1))
}

func (g *generator) malformed() {
	lane := g.rng.IntN(len(g.h.Lanes))
	r := record(stream.Event{Attributes: "{}"}, len(g.h.Lanes[lane].Records)+1)
	r.Event, r.Reason, r.Raw = stream.Event{}, stream.NotJSON, []byte(`{"id":`)
	g.append(lane, r)
}

func (g *generator) append(lane int, r stream.Record) {
	g.h.Lanes[lane].Records = append(g.h.Lanes[lane].Records, r)
	g.h.turns = append(g.h.turns, turn{lane, g.clock()})
}

// clock is the database clock: just at the newest events, unless nothing may be ahead of it.
func (g *generator) clock() stream.Micros {
	if g.h.Flavour == Confluent {
		return g.h.start
	}
	return g.now
}

// bound is the watermark of the lane alone.
func (g *generator) bound(lane int) stream.Micros {
	return g.highest[lane].Add(-g.h.Rule.OutOfOrderness[g.h.Lanes[lane].Side])
}

// admissible tells whether no split of what was made so far and e can make e or an event of its id
// late, sealed or forgotten, and no shard can miss a move. The low watermark never passes the
// watermark of a lane that still has records to read, so that one bounds it whatever the other lanes
// have delivered.
func (g *generator) admissible(e made) bool {
	bound := g.bound(e.lane)
	if e.HasTime && e.Time.Add(g.h.Rule.Lateness) < bound {
		return false
	}
	older := g.of(e.side, e.ID)
	ordered := !e.HasTime
	for _, o := range older {
		ordered = ordered || !o.HasTime
	}
	for _, o := range older {
		known := bound <= g.horizon(o)
		knownIfFirst := o.lane == e.lane || o.bound <= g.horizon(e)
		// How long a tombstone without time is remembered depends on the split, so nothing that
		// it must outlive may follow it, and nothing that it withdraws may come from elsewhere.
		inOrder := o.lane == e.lane && e.Revision >= o.Revision
		if !known || !knownIfFirst || (ordered || hiddenMove(o.Event, e.Event)) && !inOrder {
			return false
		}
	}
	return true
}

// hiddenMove tells whether a shard of another key cannot tell that the higher of two revisions moved
// the lower: it remembers no revision up to 1 of an id that it has not yet seen.
func hiddenMove(a, b stream.Event) bool {
	return max(a.Revision, b.Revision) <= 1 && a.Revision != b.Revision && a.Key != b.Key
}

func (g *generator) horizon(e made) stream.Micros {
	if !e.HasTime {
		return stream.Infinity
	}
	return g.h.Rule.Horizon(e.side, e.Time)
}

// of gives what was made of one id so far.
func (g *generator) of(s stream.Side, id string) (found []made) {
	for i := range g.made {
		if e := &g.made[i]; e.side == s && e.ID == id {
			found = append(found, *e)
		}
	}
	return found
}

func (g *generator) oneIn(n int) bool { return g.rng.IntN(n) == 0 }

// upTo gives a random duration of 0 to d, whole microseconds.
func (g *generator) upTo(d time.Duration) time.Duration {
	return time.Duration(g.rng.Int64N(d.Microseconds()+1)) * time.Microsecond
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }
