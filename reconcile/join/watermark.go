package join

import (
	"math"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// QuarantineSource names the source that reads released records again. Its events are no
// statement about how far a side has come, so it never holds the watermark.
const QuarantineSource = "quarantine"

// mark notes the time of an accepted event for its partition's watermark. That of an event of
// another shard counts as well, if as far as this shard knows that one accepts it: it is not late by
// the watermark here, and no revision held or read here makes it stale or a duplicate. What only its
// owner can know, such as that a first revision is sealed there, makes no difference here.
func (s *State) mark(w *winner, clock stream.Micros) {
	event := &w.record.Event
	if !event.HasTime {
		return
	}
	if event.Time > clock.Add(s.cfg.MaxSkew) {
		if w.mine {
			s.work.delta.Counts.Ahead++
		}
		return
	}
	s.work.marks[w.index] = max(s.work.marks[w.index], event.Time)
}

// progress gives every partition's progress after the batch, where marks holds the highest time
// accepted in each part. idle says whether a silent partition stops holding the watermark.
func (s *State) progress(
	b *stream.Batch, marks []stream.Micros, idle func(*stream.Part, stream.Progress) bool,
) []stream.Progress {
	list := make([]stream.Progress, len(b.Parts))
	for i := range b.Parts {
		part := &b.Parts[i]
		p, known := s.parts[part.Partition]
		if !known {
			p = stream.Progress{
				Partition: part.Partition, Watermark: stream.NegInfinity, LastEventAt: b.Clock,
			}
		}
		p.From, p.To, p.Identity = p.To, part.To, part.Identity
		p.Watermark = max(p.Watermark, marks[i].Add(-s.cfg.OutOfOrderness[part.Side]))
		if len(part.Records) > 0 {
			p.Idle, p.LastEventAt = false, b.Clock
		} else {
			p.Idle = idle(part, p)
		}
		if part.Sealed || part.Source == QuarantineSource {
			p.Watermark = stream.Infinity
		}
		if was := b.Release.Of(part.Partition); was != nil {
			p.Watermark, p.Idle, p.LastEventAt = was.Watermark, was.Idle, was.LastEventAt
		}
		list[i] = p
	}
	return list
}

// aim is where the batch puts the low watermark, given where it leaves the partitions.
func (s *State) aim(b *stream.Batch, list []stream.Progress) stream.Micros {
	switch {
	case b.Held != nil:
		return s.watermark
	case b.Release != nil:
		return max(b.Release.Watermark, s.watermark)
	}
	return s.lowest(list)
}

// lowest is where these partitions put the low watermark: the lowest of those that hold it. It
// never goes back, and stays where it is when all that would hold it are silent.
func (s *State) lowest(list []stream.Progress) stream.Micros {
	low, silent := stream.Infinity, false
	for _, p := range list {
		if p.Source == QuarantineSource {
			continue
		}
		if p.Idle && p.Watermark != stream.Infinity {
			silent = true
			continue
		}
		low = min(low, p.Watermark)
	}
	if silent && low == stream.Infinity {
		return s.watermark
	}
	return max(low, s.watermark)
}

// silent tells whether the partition is caught up and has been silent for its side's IdleAfter.
func (s *State) silent(part *stream.Part, lastEventAt, clock stream.Micros) bool {
	after := s.cfg.IdleAfter[part.Side]
	return after > 0 && part.CaughtUp && clock >= lastEventAt.Add(after)
}

// idle tells which silent partitions do not hold the watermark at the batch's clock.
func (s *State) idle(b *stream.Batch) func(*stream.Part, stream.Progress) bool {
	return func(part *stream.Part, p stream.Progress) bool {
		return p.Idle || s.silent(part, p.LastEventAt, b.Clock)
	}
}

// Moves tells whether an epoch is due although nothing was read: the watermark lags behind its
// target, or a partition was sealed or has been silent for long enough.
func (s *State) Moves(b *stream.Batch) bool {
	list := s.progress(b, newMarks(b), s.idle(b))
	if b.Held == nil && max(s.target, s.aim(b, list)) > s.watermark {
		return true
	}
	for _, p := range list {
		was, known := s.parts[p.Partition]
		if !known {
			was.Watermark = stream.NegInfinity
		}
		if p.Watermark != was.Watermark && p.Source != QuarantineSource || p.Idle != was.Idle {
			return true
		}
	}
	return false
}

// reachable bounds the watermark after the batch from above, before the batch is judged.
func (s *State) reachable(b *stream.Batch) stream.Micros {
	marks := newMarks(b)
	for i := range b.Parts {
		for j := range b.Parts[i].Records {
			if e := &b.Parts[i].Records[j].Event; e.HasTime {
				marks[i] = max(marks[i], e.Time)
			}
		}
	}
	mayIdle := func(part *stream.Part, _ stream.Progress) bool {
		return s.cfg.IdleAfter[part.Side] > 0 && part.CaughtUp
	}
	to := s.aim(b, s.progress(b, marks, mayIdle))
	if b.Held != nil || b.Release != nil {
		return to
	}
	return max(to, s.target)
}

func newMarks(b *stream.Batch) []stream.Micros {
	marks := make([]stream.Micros, len(b.Parts))
	for i := range marks {
		marks[i] = stream.NegInfinity
	}
	return marks
}

// moveWatermark records what was read and finds the low watermark at the epoch's end. It stays
// behind its target where too many rows close at once, or not all of them could be read at once.
func (s *State) moveWatermark(b *stream.Batch, found *stream.Found) {
	list := s.progress(b, s.work.marks, s.idle(b))
	for _, p := range list {
		s.parts[p.Partition] = p
	}
	s.work.delta.Progress = list
	s.target = s.aim(b, list)
	to := s.target
	if found != nil {
		for i, end := range found.DueTo {
			if i == 1 {
				end = end.Add(-s.cfg.Lateness)
			}
			to = min(to, end)
		}
	}
	s.watermark = max(s.watermark, s.popTimers(s.dueMost(b, to)))
}

// dueMost bounds how far the watermark moves, and how many rows may close on the way. A replay gets
// to where the watermark was.
func (s *State) dueMost(b *stream.Batch, to stream.Micros) (stream.Micros, int) {
	if b.Replays {
		return min(to, b.Watermark), math.MaxInt
	}
	return to, s.cfg.ClosingsMax
}

// settleTimeless gives tombstones without a time, of ids never seen, the first watermark as theirs.
// While the watermark is held that is the one that it will be released at.
func (s *State) settleTimeless(b *stream.Batch) {
	first := s.watermark
	if b.Held != nil {
		first = max(first, b.Held.Watermark)
	}
	for _, r := range s.work.timeless {
		r.Horizon = s.cfg.horizon(r.Side, first)
		s.timers.push(timer{at: r.Horizon, row: r})
	}
}

// popTimers looks at every row whose window closes or whose horizon passes when the watermark
// moves to this point, or to the first point before it at which as many have been looked at as may be.
func (s *State) popTimers(to stream.Micros, closingsMax int) stream.Micros {
	return s.eachDue(to, closingsMax, func(t timer) {
		s.look(t.row)
		if t.at < t.row.Horizon {
			s.timers.push(timer{at: t.row.Horizon, row: t.row})
		}
	})
}

// eachDue takes out the timers before a point, or before the first point at which limit rows have
// come up, and returns which it was.
func (s *State) eachDue(to stream.Micros, limit int, yield func(timer)) stream.Micros {
	var last stream.Micros
	for n := 0; len(s.timers) > 0 && s.timers[0].at < to; {
		if at := s.timers[0].at; n >= limit && n > 0 && at > last {
			return at
		}
		t := s.timers.pop()
		if t.row.phase != live {
			continue // which of those there are depends on what has been in memory
		}
		n++
		last = t.at
		yield(t)
	}
	return to
}

// firstTimer is when the row must first be looked at: at its window's end where it would be shown
// as provisional then, else at its horizon.
func (s *State) firstTimer(r *row) stream.Micros {
	if !r.joins() || s.cfg.Provisional != AtWindowClose || !s.cfg.keepsUnmatched(r.Side) {
		return r.Horizon
	}
	if end := s.cfg.windowEnd(r.Side, r.Time); end >= s.watermark {
		return end
	}
	return r.Horizon
}
