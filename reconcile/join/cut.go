package join

import (
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Cut shortens the batch when joining it would publish more than PairsMax pairs, and returns what
// it took off, to be joined in later epochs; nil when nothing. found answers the Needs of the whole
// batch; after a cut they must be asked for again. A single record is never cut, so that one event
// with very many partners still makes a larger epoch.
func (s *State) Cut(b *stream.Batch, found *stream.Found) (rest *stream.Batch) {
	if s.cfg.PairsMax <= 0 || b.Records() < 2 || s.pairsOf(b, found) <= s.cfg.PairsMax {
		return nil
	}
	rest = &stream.Batch{Clock: b.Clock, Held: b.Held, Parts: slices.Clone(b.Parts)}
	taken := 0
	for i := range b.Parts {
		taken += s.cutPart(&b.Parts[i], &rest.Parts[i], len(b.Parts[i].Records)/2)
	}
	for i := 0; taken == 0; i++ { // each part has one record at most
		taken += s.cutPart(&b.Parts[i], &rest.Parts[i], len(rest.Parts[i].Records))
	}
	return rest
}

// cutPart leaves n records of rest in head, which ends behind them.
func (s *State) cutPart(head, rest *stream.Part, n int) int {
	all := rest.Records
	head.Records = all[:n]
	before := s.parts[head.Partition]
	switch {
	case n == len(all):
		head.To, head.Identity = rest.To, rest.Identity
		head.CaughtUp, head.Sealed = rest.CaughtUp, rest.Sealed
	case n == 0:
		head.To, head.Identity, head.CaughtUp, head.Sealed = before.To, before.Identity, false, false
	default:
		head.To, head.CaughtUp, head.Sealed = all[n-1].Position, false, false
	}
	rest.Records = all[n:]
	return n
}

// crowd counts what can meet under one key.
type crowd struct {
	batch, found int
	// times holds, by side, the event times of the batch's events and of the rows found, sorted;
	// filled only where the counts alone do not settle the question.
	fresh, stored [2][]stream.Micros
}

// pairsOf counts the pairs that the batch makes, or gives an upper bound that is within PairsMax.
func (s *State) pairsOf(b *stream.Batch, found *stream.Found) int {
	crowds := map[string]*crowd{}
	of := func(key string) *crowd {
		c := crowds[key]
		if c == nil {
			c = &crowd{}
			crowds[key] = c
		}
		return c
	}
	eachEvent(b, func(_ stream.Side, e *stream.Event) { of(e.Key).batch++ })
	for i := range found.Rows {
		if c := crowds[found.Rows[i].Key]; c != nil {
			c.found++
		}
	}
	bound := 0
	for key, c := range crowds {
		size := c.batch + c.found
		if g := s.groups.get(key); g != nil {
			size += len(g.sides[stream.Left]) + len(g.sides[stream.Right])
		}
		bound += c.batch * (size - 1)
	}
	if bound <= s.cfg.PairsMax {
		return bound
	}
	return s.countPairs(b, found, crowds)
}

// countPairs counts them by their windows.
func (s *State) countPairs(
	b *stream.Batch, found *stream.Found, crowds map[string]*crowd,
) (pairs int) {
	eachEvent(b, func(side stream.Side, e *stream.Event) {
		c := crowds[e.Key]
		c.fresh[side] = append(c.fresh[side], e.Time)
	})
	for i := range found.Rows {
		if r := &found.Rows[i]; crowds[r.Key] != nil && r.HasTime && !r.Deleted {
			c := crowds[r.Key]
			c.stored[r.Side] = append(c.stored[r.Side], r.Time)
		}
	}
	for key, c := range crowds {
		if g := s.groups.get(key); g != nil {
			for side := range g.sides {
				for _, r := range g.sides[side] {
					c.stored[side] = append(c.stored[side], r.Time)
				}
			}
		}
		for side := range c.fresh {
			slices.Sort(c.fresh[side])
			slices.Sort(c.stored[side])
		}
		for _, side := range []stream.Side{stream.Left, stream.Right} {
			back, ahead := s.cfg.reach(side)
			for _, at := range c.fresh[side] {
				from, to := at.Add(-back), at.Add(ahead)
				pairs += within(c.stored[side.Other()], from, to)
				if side == stream.Left {
					pairs += within(c.fresh[stream.Right], from, to)
				}
			}
		}
	}
	return pairs
}

// within counts the times from one to another, bounds included.
func within(times []stream.Micros, from, to stream.Micros) int {
	first, _ := slices.BinarySearch(times, from)
	last, _ := slices.BinarySearch(times, to+1)
	return last - first
}

// eachEvent gives the events of a batch that can be joined.
func eachEvent(b *stream.Batch, yield func(stream.Side, *stream.Event)) {
	for i := range b.Parts {
		for j := range b.Parts[i].Records {
			r := &b.Parts[i].Records[j]
			if r.Reason == "" && r.Event.HasTime && !r.Event.Deleted && r.Event.Key != "" {
				yield(b.Parts[i].Side, &r.Event)
			}
		}
	}
}
