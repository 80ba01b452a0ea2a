package join

import (
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// judged is the standing of one id within the epoch being judged.
type judged struct {
	// best is the highest candidate revision, first the first candidate that has it.
	best  int64
	first *stream.Record
	// horizon is the latest of the epoch's events of the id, tombstones apart.
	horizon stream.Micros
}

// judge decides what becomes of every record, by what was known before the epoch and by the
// watermark at its start. The epoch's own events of one id are settled among themselves: the
// highest revision counts, and of equal ones the first in source-position order.
func (s *State) judge(b *stream.Batch) {
	ids := [2]map[string]*judged{{}, {}}
	var candidates []winner
	anyLone := false
	for i := range b.Parts {
		part := &b.Parts[i]
		s.work.delta.Counts.Read += int64(len(part.Records))
		for j := range part.Records {
			c := winner{part: part, index: i, record: &part.Records[j]}
			if !s.standing(&c, b.Clock) {
				continue
			}
			candidates = append(candidates, c)
			anyLone = anyLone || c.lone
			if !c.lone {
				s.note(ids[part.Side], c)
			}
		}
	}
	if anyLone {
		candidates = s.admitLone(candidates, &ids, b.Clock)
	}
	for _, c := range candidates {
		s.settleCandidate(c, ids[c.part.Side][c.record.Event.ID])
	}
}

// admitLone lets late tombstones stand with the events of the same id that the epoch takes in, as
// a tombstone of a buffered event is never late, and sets the others aside. A foreign first revision
// stands with them as well, as one that comes after them would; others do not concern this shard.
func (s *State) admitLone(
	candidates []winner, ids *[2]map[string]*judged, clock stream.Micros,
) []winner {
	admitted := false
	candidates = slices.DeleteFunc(candidates, func(c winner) bool {
		switch {
		case !c.lone:
			return false
		case ids[c.part.Side][c.record.Event.ID] != nil:
			admitted = true
			return false
		case c.late:
			s.setAside(&c, stream.PastHorizon, nil)
		default:
			s.work.delta.Counts.OutOfShard++
			s.mark(&c, clock)
		}
		return true
	})
	if admitted {
		// Which of equal revisions came first depends on all of them.
		*ids = [2]map[string]*judged{{}, {}}
		for _, c := range candidates {
			s.note(ids[c.part.Side], c)
		}
	}
	return candidates
}

func (s *State) note(ids map[string]*judged, c winner) {
	event := &c.record.Event
	j := ids[event.ID]
	if j == nil {
		j = &judged{best: event.Revision, first: c.record, horizon: stream.NegInfinity}
		ids[event.ID] = j
	}
	if event.Revision > j.best {
		j.best, j.first = event.Revision, c.record
	}
	if !event.Deleted {
		j.horizon = max(j.horizon, s.cfg.horizon(c.part.Side, event.Time))
	}
}

func (s *State) settleCandidate(c winner, id *judged) {
	event := &c.record.Event
	switch {
	case event.Revision < id.best:
		s.tally(&c, &s.work.delta.Counts.Stale)
	case c.record == id.first:
		c.horizon = id.horizon
		s.work.winners = append(s.work.winners, c)
	case event.SameContent(&id.first.Event):
		s.tally(&c, &s.work.delta.Counts.Duplicate)
	default:
		c.mine = s.speaks(&c, id.first.Event.Key)
		s.quarantine(&c, stream.ConflictingRevision)
	}
}

// standing judges one record against the state before the epoch. It returns false when that has
// dealt with the record.
func (s *State) standing(c *winner, clock stream.Micros) bool {
	event := &c.record.Event
	c.mine = s.speaks(c, "")
	if c.record.Reason != "" {
		s.quarantine(c, c.record.Reason)
		return false
	}
	if event.HasTime && event.Time > clock.Add(s.cfg.MaxAhead) {
		s.quarantine(c, stream.FarFuture)
		return false
	}
	c.foreign = !s.cfg.owns(event.Key)
	known := s.ids[c.part.Side].get(event.ID)
	late := event.HasTime && s.cfg.late(event.Time, s.watermark)
	if known != nil && known.phase != gone {
		c.mine = s.speaks(c, known.Key)
		return s.against(c, known, late)
	}
	if late && !event.Deleted {
		s.setAside(c, stream.PastHorizon, nil)
		return false
	}
	c.late = late
	c.lone = late || c.foreign && event.Revision <= firstRevision
	return true
}

// against judges a record by the revision of its id that is held or sealed.
func (s *State) against(c *winner, known *row, late bool) bool {
	event := &c.record.Event
	switch {
	case event.Revision < known.Revision:
		s.tally(c, &s.work.delta.Counts.Stale)
	case event.Revision == known.Revision:
		// Of a sealed event the content is no longer known.
		if known.phase == sealed || event.SameContent(&known.Event) {
			s.tally(c, &s.work.delta.Counts.Duplicate)
		} else {
			s.quarantine(c, stream.ConflictingRevision)
		}
	case known.phase == sealed:
		// Only the shard that sealed it can tell, also where the revision moves it to another.
		c.mine = true
		s.setAside(c, stream.SealedRevision, known)
	case late && !event.Deleted:
		s.setAside(c, stream.PastHorizon, known)
	default:
		c.old = known
		return true
	}
	return false
}

// quarantine sets a record aside whole, in the shard that speaks for it.
func (s *State) quarantine(c *winner, reason stream.Reason) {
	s.tally(c, &s.work.delta.Counts.Quarantined)
	if !c.mine {
		return
	}
	s.work.delta.Quarantined = append(s.work.delta.Quarantined, stream.Quarantined{
		Partition: c.part.Partition, Position: c.record.Position, Reason: reason, Raw: c.record.Raw,
	})
}

// setAside stores an event that comes too late for live state, with the event times it touches, in
// the shard that speaks for it.
func (s *State) setAside(c *winner, reason stream.Reason, known *row) {
	s.tally(c, &s.work.delta.Counts.Late)
	if !c.mine {
		return
	}
	affected := stream.Range{From: stream.Infinity, To: stream.NegInfinity}
	for _, e := range []*stream.Event{&c.record.Event, content(known)} {
		if e != nil && e.HasTime {
			r := s.cfg.affected(e.Time)
			affected.From, affected.To = min(affected.From, r.From), max(affected.To, r.To)
		}
	}
	s.work.delta.Corrections = append(s.work.delta.Corrections, stream.Correction{
		Partition: c.part.Partition, Event: c.record.Event, Position: c.record.Position,
		Reason: reason, From: affected.From, To: affected.To,
	})
}

func content(r *row) *stream.Event {
	if r == nil {
		return nil
	}
	return &r.Event
}
