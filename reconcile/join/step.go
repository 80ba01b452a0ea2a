package join

import (
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// work is what one Step gathers before it becomes a Delta.
type work struct {
	delta *stream.Delta
	// winners are the events that enter the state, in source-position order.
	winners []winner
	// added are the winners' rows; timeless those of them whose horizon waits for a watermark.
	added, timeless []*row
	// withdrawn are results that end, each with its new status; joined are the pairs made.
	withdrawn []outcome
	joined    []pair
	// touched are the rows whose unmatched row must be looked at again.
	touched []*row
	opened  []outcome
	// expired are rows outside memory that may leave the buffer, without a change to any result.
	expired []*stream.BufferRow
	// marks holds, for each part, the highest event time accepted.
	marks []stream.Micros
}

type pair struct{ left, right *row }

// outcome is one result row and what becomes of it; the absent side of an unmatched row is nil.
type outcome struct {
	pair
	status stream.Status
	cause  stream.Reason
	fresh  bool
}

// winner is the accepted revision of one id in one epoch.
type winner struct {
	part *stream.Part
	// index is the part's place in the batch.
	index  int
	record *stream.Record
	// old is the live row it replaces, if any.
	old *row
	// mine is true where this shard speaks for the record; what other shards speak for is counted
	// as out of shard. foreign is true where another shard owns its key.
	mine, foreign bool
	// late marks a tombstone of an unknown id whose time is past the watermark. lone marks an event
	// that counts only beside others of its id: a late one, or a foreign first revision.
	late, lone bool
	// horizon is the latest of the id's events in this epoch, tombstones apart.
	horizon stream.Micros
}

// Step joins the batch as the next epoch and returns all that it changes. found must answer the
// Needs of the same batch. The state has moved on when Step returns: if the epoch cannot be
// committed, the State is of no use any more.
func (s *State) Step(b *stream.Batch, found *stream.Found) *stream.Delta {
	s.epoch++
	s.work = work{
		delta: &stream.Delta{Epoch: s.epoch, Clock: b.Clock, WatermarkBefore: s.watermark},
		// The slices are reused, their contents were copied into the last delta.
		withdrawn: s.work.withdrawn[:0], joined: s.work.joined[:0],
		touched: s.work.touched[:0], opened: s.work.opened[:0], winners: s.work.winners[:0],
		added: s.work.added[:0], expired: s.work.expired[:0],
	}
	s.work.marks = newMarks(b)
	s.attach(found)
	s.judge(b)
	s.withdrawOld()
	s.joinNew(b)
	s.moveWatermark(b, found)
	s.settleTimeless(b)
	s.settle()
	return s.finish()
}

// withdrawOld takes the rows that a winner replaces out of the state, with their results.
// Deletions come first: where both members of a pair change, the deletion is its cause.
func (s *State) withdrawOld() {
	for _, deletions := range []bool{true, false} {
		for i := range s.work.winners {
			if w := &s.work.winners[i]; w.old != nil && w.record.Event.Deleted == deletions {
				s.withdraw(w.old, deletions)
			}
		}
	}
}

func (s *State) withdraw(old *row, deleted bool) {
	status, cause := stream.Superseded, stream.CauseRevised
	if deleted {
		status, cause = stream.Retracted, stream.CauseDeleted
	}
	for _, p := range old.partners {
		s.work.withdrawn = append(s.work.withdrawn, outcome{ordered(old, p), status, cause, false})
		p.partners = slices.DeleteFunc(p.partners, func(o *row) bool { return o == old })
		p.lost = s.epoch
		s.look(p)
	}
	old.group.pairs -= len(old.partners)
	old.partners = nil
	if old.only != none {
		s.work.withdrawn = append(s.work.withdrawn, outcome{alone(old), status, cause, false})
		old.only = none
	}
	s.remove(old)
	old.phase = retired
	s.ids[old.Side].delete(old.ID)
	s.cached--
	s.buffered--
	s.work.delta.Retired = append(s.work.delta.Retired, &old.BufferRow)
}

// joinNew adds the winners' rows and pairs them with every live partner in reach.
func (s *State) joinNew(b *stream.Batch) {
	for i := range s.work.winners {
		w := &s.work.winners[i]
		r := s.newRow(w)
		partners := s.partnersOf(r)
		if w.old == nil && s.tooHot(r, len(partners)) {
			s.quarantine(w, stream.HotKey)
			continue
		}
		s.tally(w, &s.work.delta.Counts.Accepted)
		s.mark(w, b.Clock)
		s.add(r)
		for _, p := range partners {
			r.partners = append(r.partners, p)
			p.partners = append(p.partners, r)
			s.work.joined = append(s.work.joined, ordered(r, p))
			s.look(p)
		}
		r.group.pairs += len(partners)
		s.look(r)
	}
}

func (s *State) newRow(w *winner) *row {
	r := &row{onlyFresh: true, marker: w.foreign, BufferRow: stream.BufferRow{
		Side: w.part.Side, Event: w.record.Event, Source: w.part.Source, Number: w.part.Number,
		Position: w.record.Position, AddedEpoch: s.epoch, Spilled: s.spilling,
	}}
	switch {
	case !r.joins() && w.eventHorizon() != stream.NegInfinity:
		r.Horizon = w.eventHorizon()
	case r.HasTime:
		r.Horizon = s.cfg.horizon(r.Side, r.Time)
	default:
		r.Horizon = s.cfg.horizon(r.Side, s.watermark)
		if !s.watermark.Finite() {
			s.work.timeless = append(s.work.timeless, r)
		}
	}
	return r
}

// eventHorizon is how long the event that a tombstone or a move withdraws would have been held,
// -infinity where none is known.
func (w *winner) eventHorizon() stream.Micros {
	if w.old == nil {
		return w.horizon
	}
	return max(w.horizon, w.old.Horizon)
}

// partnersOf finds the live rows of the other side within reach, bounds included.
func (s *State) partnersOf(r *row) []*row {
	g := s.groups.get(r.Key)
	if g == nil || !r.joins() {
		return nil
	}
	back, ahead := s.cfg.reach(r.Side)
	from, to := r.Time.Add(-back), r.Time.Add(ahead)
	list := g.sides[r.Side.Other()]
	first, _ := slices.BinarySearchFunc(list, from, func(o *row, t stream.Micros) int {
		if o.Time < t {
			return -1
		}
		return 1
	})
	last := first
	for last < len(list) && list[last].Time <= to {
		last++
	}
	return list[first:last]
}

func (s *State) tooHot(r *row, partners int) bool {
	g := s.groups.get(r.Key)
	return partners > 0 && g.pairs+partners > s.cfg.MaxPairsPerKey
}

func (s *State) add(r *row) {
	s.work.added = append(s.work.added, r)
	s.ids[r.Side].put(r)
	s.insert(r)
	s.cached++
	s.buffered++
}

// look marks a row whose unmatched row must be looked at when the epoch ends.
func (s *State) look(r *row) {
	if r.touched != s.epoch {
		r.touched = s.epoch
		s.work.touched = append(s.work.touched, r)
	}
}

func ordered(a, b *row) pair {
	if a.Side == stream.Left {
		return pair{a, b}
	}
	return pair{b, a}
}

func alone(r *row) pair {
	if r.Side == stream.Left {
		return pair{left: r}
	}
	return pair{right: r}
}
