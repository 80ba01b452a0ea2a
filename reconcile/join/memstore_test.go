package join_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// memStore stores deltas and answers Needs as the tables do, from nothing but what was written.
type memStore struct {
	// rows are those neither retired nor past their horizon.
	rows    []stream.BufferRow
	results map[stream.MatchID]stream.Result
	// of names the results of an id, by side.
	of    [2]map[string][]stream.MatchID
	start join.Start
}

func newMemStore() *memStore {
	return &memStore{
		results: map[stream.MatchID]stream.Result{},
		of:      [2]map[string][]stream.MatchID{{}, {}},
		start:   join.Start{Watermark: stream.NegInfinity},
	}
}

// commit applies a delta and reports what the tables' constraints would refuse.
func (m *memStore) commit(d *stream.Delta) error {
	if d.Epoch != m.start.Epoch+1 {
		return fmt.Errorf("epoch %d follows %d", d.Epoch, m.start.Epoch)
	}
	if !d.Counts.Balanced() {
		return fmt.Errorf("counts do not balance: %+v", d.Counts)
	}
	m.rows = append(m.rows, d.Added...)
	if err := m.remove(d.Retired); err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	for _, c := range d.Changes {
		was, known := m.results[c.MatchID]
		if known && was.Status == c.Status {
			return fmt.Errorf("result %v %v goes from %s to itself", c.Left, c.Right, c.Status)
		}
		if !known && !c.Status.Active() {
			return fmt.Errorf("result %v %v begins as %s", c.Left, c.Right, c.Status)
		}
		if known && was.Status == stream.Final {
			return fmt.Errorf("final result %v %v changes to %s", c.Left, c.Right, c.Status)
		}
		if !known {
			m.of[stream.Left][c.Left.ID] = append(m.of[stream.Left][c.Left.ID], c.MatchID)
			m.of[stream.Right][c.Right.ID] = append(m.of[stream.Right][c.Right.ID], c.MatchID)
		}
		m.results[c.MatchID] = c.Result
	}
	m.start.Epoch, m.start.Watermark = d.Epoch, d.WatermarkAfter
	m.start.Progress = d.Progress
	if err := m.remove(d.Expired); err != nil {
		return fmt.Errorf("expire: %w", err)
	}
	if n := len(m.rows) - len(m.live(m.start.Watermark)); n != 0 {
		return fmt.Errorf("%d rows past their horizon are not among the expired", n)
	}
	if int64(len(d.Expired)) != d.Counts.Expired {
		return fmt.Errorf("delta counts %d expired rows, lists %d", d.Counts.Expired, len(d.Expired))
	}
	m.start.Buffered = int64(len(m.rows))
	if m.start.Buffered != d.Counts.Buffered {
		return fmt.Errorf("delta counts %d buffered rows, stored are %d", d.Counts.Buffered,
			m.start.Buffered)
	}
	return nil
}

// remove takes rows out; each must be stored just as it is given, but for the mark of spilling.
func (m *memStore) remove(leaving []*stream.BufferRow) error {
	stored := make(map[stream.BufferRow]bool, len(leaving))
	for _, r := range leaving {
		stored[unspilled(*r)] = true
	}
	before := len(m.rows)
	m.rows = slices.DeleteFunc(m.rows, func(r stream.BufferRow) bool { return stored[unspilled(r)] })
	if before-len(m.rows) != len(leaving) {
		return fmt.Errorf("of %d rows only %d are stored like this", len(leaving), before-len(m.rows))
	}
	return nil
}

func unspilled(r stream.BufferRow) stream.BufferRow {
	r.Spilled = false
	return r
}

// spill marks every row, as the store does before keys may leave memory.
func (m *memStore) spill() {
	for i := range m.rows {
		m.rows[i].Spilled = true
	}
}

// restart gives the state of a new worker: with everything in memory, or with nothing in it and
// everything marked. Of the latter it is not always known what is stored.
func (m *memStore) restart(cfg join.Config, load bool) *join.State {
	start := m.start
	if !load {
		m.spill()
		start.Spilled = true
	}
	state := join.New(cfg, start)
	if load {
		for part := range slices.Chunk(m.rows, 3) {
			state.LoadRows(part)
		}
	}
	if load || len(m.rows)%2 == 0 {
		state.Know(m.seen(!load))
	}
	return state
}

// seen remembers what is stored.
func (m *memStore) seen(rows bool) *join.Seen {
	seen := join.NewSeen()
	for i := range m.rows {
		if rows {
			seen.Add(m.rows[i].Side, m.rows[i].ID)
			seen.AddKey(m.rows[i].Key)
		}
	}
	for _, r := range m.results {
		if r.Status.Active() {
			seen.Add(stream.Left, r.Left.ID)
			seen.Add(stream.Right, r.Right.ID)
		}
	}
	return seen
}

func (m *memStore) live(w stream.Micros) []stream.BufferRow {
	var rows []stream.BufferRow
	for _, r := range m.rows {
		if r.Horizon >= w {
			rows = append(rows, r)
		}
	}
	return rows
}

func (m *memStore) fetch(n stream.Needs, w stream.Micros) *stream.Found {
	rows := m.live(w)
	found := &stream.Found{}
	keys := map[string]bool{}
	for _, k := range n.Keys {
		keys[k] = true
	}
	ids := [2]map[string]bool{{}, {}}
	for side := range n.IDs {
		for _, id := range n.IDs[side] {
			ids[side][id] = true
		}
	}
	for _, r := range rows {
		if ids[r.Side][r.ID] {
			keys[r.Key] = true
		}
	}
	for i := range n.Due {
		m.due(rows, &n, i, keys, found)
	}
	for _, r := range rows {
		if r.Spilled && keys[r.Key] {
			found.Rows = append(found.Rows, r)
			ids[r.Side][r.ID] = true
		}
	}
	for side := range n.Results {
		for _, id := range n.Results[side] {
			ids[side][id] = true
		}
	}
	m.collect(ids, found)
	return found
}

func (m *memStore) due(
	rows []stream.BufferRow, n *stream.Needs, number int, keys map[string]bool, found *stream.Found,
) {
	due, limit := n.Due[number], n.DueMax
	var in []stream.BufferRow
	for _, r := range rows {
		if r.Spilled && due.From <= r.Horizon && r.Horizon < due.To {
			in = append(in, r)
		}
	}
	slices.SortFunc(in, func(a, b stream.BufferRow) int { return cmp.Compare(a.Horizon, b.Horizon) })
	end := due.To
	if len(in) > limit {
		end = in[limit-1].Horizon + 1
	}
	for _, r := range in {
		switch {
		case r.Horizon >= end:
		case m.alone(&r, n, number):
			keys[r.Key] = true
		case number == 0:
			found.Expired = append(found.Expired, r)
		}
	}
	found.DueTo = append(found.DueTo, end)
}

// alone tells whether all is needed of a row that is due.
func (m *memStore) alone(r *stream.BufferRow, n *stream.Needs, number int) bool {
	for _, match := range m.of[r.Side][r.ID] {
		switch m.results[match].Status {
		case stream.Matched:
			return false
		case stream.Provisional, stream.Final:
			if number == 1 {
				return false
			}
		}
	}
	return !r.Deleted && n.Keeps[r.Side]
}

// collect adds the active results of the ids, and those of the partners in them.
func (m *memStore) collect(ids [2]map[string]bool, found *stream.Found) {
	seen := map[stream.MatchID]bool{}
	for range 2 {
		first := len(found.Results)
		for side := range ids {
			for id := range ids[side] {
				for _, match := range m.of[side][id] {
					if r := m.results[match]; r.Status.Active() && !seen[match] {
						seen[match] = true
						found.Results = append(found.Results, r)
					}
				}
			}
		}
		for _, r := range found.Results[first:] {
			if r.Left.ID != "" {
				ids[stream.Left][r.Left.ID] = true
			}
			if r.Right.ID != "" {
				ids[stream.Right][r.Right.ID] = true
			}
		}
	}
}

// active gives the active results as lines: "matched o1/1 i1/1", sorted.
func (m *memStore) active() []string {
	var lines []string
	for _, r := range m.results {
		if r.Status.Active() {
			lines = append(lines, fmt.Sprintf("%s %s %s", r.Status, name(r.Left), name(r.Right)))
		}
	}
	slices.Sort(lines)
	return lines
}

func name(m stream.Member) string {
	if m.ID == "" {
		return "-"
	}
	return fmt.Sprintf("%s/%d", m.ID, m.Revision)
}
