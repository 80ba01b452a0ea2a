package oracle

import (
	"slices"
	"strconv"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Model is the naive reconciliation of one shard: it keeps lists, looks at everything each epoch
// and is meant to be read, not to be fast. The zero value is not usable.
type Model struct {
	rule       Rule
	watermark  stream.Micros
	watermarks map[stream.Partition]stream.Micros
	buffer     []row
	results    map[name]stream.Status
	// onTime are the arrivals of the epoch in work that were not dealt with by themselves.
	onTime []Arrival
}

// row is one event revision in the buffer.
type row struct {
	side    stream.Side
	event   stream.Event
	horizon stream.Micros
}

// member is an event revision in a result; the absent side of an only-row has an empty id.
type member struct {
	id       string
	revision int64
}

func (m member) String() string { return m.id + "/" + strconv.FormatInt(m.revision, 10) }

// name is a result's identity under one rule version, its members by side.
type name [2]member

func (n name) String() string {
	text := [2]string{"-", "-"}
	for s, m := range n {
		if m.id != "" {
			text[s] = m.String()
		}
	}
	return text[0] + " " + text[1]
}

// NewModel gives a model that has seen nothing. Partitions are all there are: one that never
// delivers holds the low watermark at -infinity.
func NewModel(rule Rule, partitions []stream.Partition) *Model {
	m := &Model{
		rule:       rule,
		watermark:  stream.NegInfinity,
		watermarks: map[stream.Partition]stream.Micros{},
		results:    map[name]stream.Status{},
	}
	for _, p := range partitions {
		m.watermarks[p] = stream.NegInfinity
	}
	return m
}

// Step applies one epoch and tells what it did.
func (m *Model) Step(e Epoch) Report {
	rep := Report{WatermarkBefore: m.watermark}
	accepted := m.judge(e, &rep)
	m.moveWatermarks(e, accepted, &rep)
	m.enter(accepted, rep.WatermarkBefore, e.Held)
	m.publish(m.activeNow(accepted), accepted, &rep)
	m.expire(&rep)
	rep.WatermarkAfter = m.watermark
	rep.Active = m.Active()
	return rep
}

// Active gives the active results as sorted lines: status, then the members.
func (m *Model) Active() []string {
	var lines []string
	for n, status := range m.results {
		if status.Active() {
			lines = append(lines, string(status)+" "+n.String())
		}
	}
	slices.Sort(lines)
	return lines
}

// Statuses gives the status of every result there ever was, by its members: "o1/1 i1/1".
func (m *Model) Statuses() map[string]stream.Status {
	all := map[string]stream.Status{}
	for n, status := range m.results {
		all[n.String()] = status
	}
	return all
}

// PartitionWatermark gives where partition p stands.
func (m *Model) PartitionWatermark(p stream.Partition) stream.Micros { return m.watermarks[p] }

func (m *Model) moveWatermarks(e Epoch, accepted []Arrival, rep *Report) {
	for _, a := range accepted {
		switch {
		case !a.Event.HasTime:
		case a.Event.Time > e.Clock.Add(m.rule.MaxSkew):
			rep.Counts.Ahead++
		default:
			reached := a.Event.Time.Add(-m.rule.OutOfOrderness[a.Side])
			m.watermarks[a.Partition] = max(m.watermarks[a.Partition], reached)
		}
	}
	for _, p := range e.Sealed {
		m.watermarks[p] = stream.Infinity
	}
	if e.Held != nil {
		return
	}
	if e.Release != nil {
		for _, p := range e.Release.Partitions {
			m.watermarks[p.Partition] = p.Watermark
		}
		m.watermark = max(m.watermark, e.Release.Watermark)
		return
	}
	lowest := stream.Infinity
	for _, w := range m.watermarks {
		lowest = min(lowest, w)
	}
	m.watermark = max(m.watermark, lowest)
}

// enter puts accepted events into the buffer in place of their older revisions. Where the watermark
// is held, what takes it as its time takes the one at which that ends.
func (m *Model) enter(accepted []Arrival, before stream.Micros, held *stream.CatchUp) {
	first := m.watermark
	if held != nil {
		first = max(first, held.Watermark)
	}
	for _, a := range accepted {
		added := row{a.Side, a.Event, m.rule.Horizon(a.Side, a.Event.Time)}
		old := m.bufferedRow(a.Side, a.Event.ID)
		switch {
		case a.Event.Deleted && m.eventHorizon(a, old) != stream.NegInfinity:
			added.horizon = m.eventHorizon(a, old)
		case !a.Event.HasTime && before.Finite():
			added.horizon = m.rule.Horizon(a.Side, before)
		case !a.Event.HasTime:
			added.horizon = m.rule.Horizon(a.Side, first)
		}
		m.buffer = slices.DeleteFunc(m.buffer, func(r row) bool {
			return r.side == a.Side && r.event.ID == a.Event.ID
		})
		m.buffer = append(m.buffer, added)
	}
}

// eventHorizon is the latest horizon of the event that a tombstone withdraws: of its row in the
// buffer, and of its revisions in the same epoch. -infinity when there is neither.
func (m *Model) eventHorizon(tombstone Arrival, old *row) stream.Micros {
	latest := stream.NegInfinity
	if old != nil {
		latest = old.horizon
	}
	for _, o := range m.onTime {
		if o.Side == tombstone.Side && o.Event.ID == tombstone.Event.ID && !o.Event.Deleted {
			latest = max(latest, m.rule.Horizon(o.Side, o.Event.Time))
		}
	}
	return latest
}

// activeNow gives the results that are active at the end of the epoch, before rows leave.
func (m *Model) activeNow(accepted []Arrival) map[name]stream.Status {
	active := map[name]stream.Status{}
	for n, status := range m.results {
		if status == stream.Matched && revisedBy(accepted, n) == nil {
			active[n] = stream.Matched
		}
	}
	for _, l := range m.buffer {
		for _, r := range m.buffer {
			if l.side == stream.Left && r.side == stream.Right && m.match(&l.event, &r.event) {
				active[pair(&l.event, &r.event)] = stream.Matched
			}
		}
	}
	paired := membersOf(active)
	for n, status := range m.results {
		for _, s := range []stream.Side{stream.Left, stream.Right} {
			gone := n[s].id != "" && status.Active() && m.bufferedRow(s, n[s].id) == nil
			if gone && m.hasOnly(s) && !paired[only(s, n[s])] {
				active[only(s, n[s])] = stream.Final
			}
		}
	}
	for _, r := range m.buffer {
		self := only(r.side, member{r.event.ID, r.event.Revision})
		status := m.unmatched(r)
		if status != "" && !r.event.Deleted && m.hasOnly(r.side) && !paired[self] {
			active[self] = status
		}
	}
	return active
}

// unmatched gives the status of a buffered row's only-row while it has no partner; empty for none.
func (m *Model) unmatched(r row) stream.Status {
	switch {
	case m.watermark > r.horizon:
		return stream.Final
	case m.rule.Provisional == Eager:
		return stream.Provisional
	case m.rule.Provisional == AtWindowClose &&
		m.watermark > m.rule.WindowEnd(r.side, r.event.Time):
		return stream.Provisional
	}
	return ""
}

// publish moves every result to where it stands now, and reports the net transitions.
func (m *Model) publish(active map[name]stream.Status, accepted []Arrival, rep *Report) {
	for n, status := range m.results {
		if status.Active() && active[n] == "" {
			m.move(n, withdrawn(accepted, n), rep)
		}
	}
	for n, status := range active {
		m.move(n, status, rep)
	}
	slices.SortFunc(rep.Transitions, Transition.compare)
}

func (m *Model) move(n name, to stream.Status, rep *Report) {
	if from := m.results[n]; from != to {
		m.results[n] = to
		rep.transition(Transition{n.String(), from, to})
	}
}

func (m *Model) expire(rep *Report) {
	before := len(m.buffer)
	m.buffer = slices.DeleteFunc(m.buffer, func(r row) bool { return r.horizon < m.watermark })
	rep.Counts.Expired = int64(before - len(m.buffer))
	rep.Counts.Buffered = int64(len(m.buffer))
}

func (m *Model) bufferedRow(s stream.Side, id string) *row {
	for i, r := range m.buffer {
		if r.side == s && r.event.ID == id {
			return &m.buffer[i]
		}
	}
	return nil
}

func (m *Model) match(l, r *stream.Event) bool {
	return !l.Deleted && !r.Deleted && l.Key == r.Key &&
		l.Time.Add(-m.rule.Before) <= r.Time && r.Time <= l.Time.Add(m.rule.After)
}

func (m *Model) hasOnly(s stream.Side) bool {
	return m.rule.Join == JoinFull || m.rule.Join == s.String()
}

func pair(l, r *stream.Event) name { return name{{l.ID, l.Revision}, {r.ID, r.Revision}} }

func only(s stream.Side, of member) (n name) {
	n[s] = of
	return n
}

// membersOf gives every event revision that is in a pair, under the name of its only-row.
func membersOf(pairs map[name]stream.Status) map[name]bool {
	members := map[name]bool{}
	for n := range pairs {
		members[only(stream.Left, n[stream.Left])] = true
		members[only(stream.Right, n[stream.Right])] = true
	}
	return members
}

// revisedBy gives the accepted event that withdraws n, a tombstone before others; nil for none.
func revisedBy(accepted []Arrival, n name) (by *stream.Event) {
	for i, a := range accepted {
		if a.Event.ID == n[a.Side].id && (by == nil || a.Event.Deleted) {
			by = &accepted[i].Event
		}
	}
	return by
}

// withdrawn gives the status of a result that is no longer active.
func withdrawn(accepted []Arrival, n name) stream.Status {
	if by := revisedBy(accepted, n); by != nil && !by.Deleted {
		return stream.Superseded
	}
	return stream.Retracted
}
