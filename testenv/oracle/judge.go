package oracle

import (
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Arrival is one record with the place it was read at.
type Arrival struct {
	stream.Partition
	stream.Record
	// at is the place in the epoch's source order.
	at int
}

// Aside is an arrival that was set aside as a correction or quarantined.
type Aside struct {
	Arrival
	Why stream.Reason
}

// String gives side, id/revision and the reason: right s2/1 past_horizon.
func (a Aside) String() string {
	return fmt.Sprintf("%s %s %s", a.Side, member{a.Event.ID, a.Event.Revision}, a.Why)
}

func (a Aside) compare(b Aside) int { return a.at - b.at }

// judge sorts an epoch's arrivals into what counts and what doesn't, and returns the accepted
// ones. It looks only at what was known before the epoch.
func (m *Model) judge(e Epoch, rep *Report) []Arrival {
	var candidates, onTime, accepted []Arrival
	for _, a := range inOrder(e) {
		rep.Counts.Read++
		if m.worthACandidate(a, e.Clock, rep) {
			candidates = append(candidates, a)
		}
	}
	for _, a := range candidates {
		excused := a.Event.Deleted && m.anyOnTime(candidates, a)
		if m.late(a) && !excused {
			rep.setAside(a, stream.PastHorizon)
			continue
		}
		onTime = append(onTime, a)
	}
	m.onTime = onTime
	for i, a := range onTime {
		first := onTime[firstOfHighest(onTime, a)]
		switch {
		case a.Event.Revision < first.Event.Revision:
			rep.Counts.Stale++
		case firstOfHighest(onTime, a) == i:
			rep.Counts.Accepted++
			accepted = append(accepted, a)
		case a.Event.SameContent(&first.Event):
			rep.Counts.Duplicate++
		default:
			rep.quarantine(a, stream.ConflictingRevision)
		}
	}
	slices.SortFunc(rep.Corrections, Aside.compare)
	slices.SortFunc(rep.Quarantined, Aside.compare)
	return accepted
}

// worthACandidate accounts for everything that the clock or the state before the epoch decides.
func (m *Model) worthACandidate(a Arrival, clock stream.Micros, rep *Report) bool {
	known, buffered, sealed := m.known(a.Side, a.Event.ID)
	switch {
	case a.Reason != "":
		rep.quarantine(a, a.Reason)
	case a.Event.HasTime && a.Event.Time > clock.Add(m.rule.MaxAhead):
		rep.quarantine(a, stream.FarFuture)
	case buffered == nil && !sealed:
		return true
	case a.Event.Revision < known:
		rep.Counts.Stale++
	case a.Event.Revision == known && buffered != nil && !a.Event.SameContent(&buffered.event):
		rep.quarantine(a, stream.ConflictingRevision)
	case a.Event.Revision == known:
		rep.Counts.Duplicate++
	case sealed:
		rep.setAside(a, stream.SealedRevision)
	default:
		return true
	}
	return false
}

// known gives the revision held of an id before the epoch: of its buffered row, else of the active
// results of an event that has left the buffer, which is then sealed.
func (m *Model) known(s stream.Side, id string) (revision int64, buffered *row, sealed bool) {
	if buffered = m.bufferedRow(s, id); buffered != nil {
		return buffered.event.Revision, buffered, false
	}
	for name, status := range m.results {
		if status.Active() && name[s].id == id {
			if !sealed || name[s].revision > revision {
				revision = name[s].revision
			}
			sealed = true
		}
	}
	return revision, nil, sealed
}

func (m *Model) late(a Arrival) bool {
	if !a.Event.HasTime || a.Event.Deleted && m.bufferedRow(a.Side, a.Event.ID) != nil {
		return false
	}
	return a.Event.Time.Add(m.rule.Lateness) < m.watermark
}

func (m *Model) anyOnTime(candidates []Arrival, of Arrival) bool {
	return slices.ContainsFunc(candidates, func(c Arrival) bool {
		return sameID(c, of) && !m.late(c)
	})
}

// firstOfHighest gives the index of the arrival that is the truth about of's id.
func firstOfHighest(arrivals []Arrival, of Arrival) int {
	best := -1
	for i, a := range arrivals {
		if sameID(a, of) && (best < 0 || a.Event.Revision > arrivals[best].Event.Revision) {
			best = i
		}
	}
	return best
}

func sameID(a, b Arrival) bool { return a.Side == b.Side && a.Event.ID == b.Event.ID }

// inOrder gives the epoch's records in source position order.
func inOrder(e Epoch) []Arrival {
	slicesInOrder := slices.Clone(e.Slices)
	slices.SortStableFunc(slicesInOrder, func(a, b Slice) int {
		return a.Partition.Compare(b.Partition)
	})
	var all []Arrival
	for _, s := range slicesInOrder {
		for _, r := range s.Records {
			all = append(all, Arrival{s.Partition, r, len(all)})
		}
	}
	return all
}
