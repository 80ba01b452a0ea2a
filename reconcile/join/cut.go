package join

import (
	"math/bits"
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

// pairsOf counts the pairs that the batch makes, or gives an upper bound that is within PairsMax.
func (s *State) pairsOf(b *stream.Batch, found *stream.Found) int {
	if bound := s.pairsAtMost(b, found); bound <= s.cfg.PairsMax {
		return bound
	}
	return s.countPairs(b, found)
}

// pairsAtMost lets each event meet all that has its key. What is of the batch or found is counted by
// the hash of its key: where two keys share a count, the bound is only higher.
func (s *State) pairsAtMost(b *stream.Batch, found *stream.Found) (bound int) {
	counts := make([]int32, 1<<bits.Len(uint(4*b.Records())))
	mask := uint64(len(counts) - 1)
	for i := range found.Rows {
		counts[hashOf(found.Rows[i].Key)&mask]++
	}
	eachEvent(b, func(_ stream.Side, e *stream.Event) { counts[hashOf(e.Key)&mask]++ })
	eachEvent(b, func(_ stream.Side, e *stream.Event) {
		hash := hashOf(e.Key)
		bound += int(counts[hash&mask]) - 1
		if g := s.groups.getHashed(e.Key, hash); g != nil {
			bound += len(g.sides[stream.Left]) + len(g.sides[stream.Right])
		}
	})
	return bound
}

// crowd holds, by side, the event times under one key of the batch's events and of the stored rows.
type crowd struct{ fresh, stored [2][]stream.Micros }

// countPairs counts them by their windows.
func (s *State) countPairs(b *stream.Batch, found *stream.Found) (pairs int) {
	crowds := map[string]*crowd{}
	eachEvent(b, func(side stream.Side, e *stream.Event) {
		c := crowds[e.Key]
		if c == nil {
			c = &crowd{}
			crowds[e.Key] = c
		}
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
