package join

import (
	"math"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Loading a whole state is not the same as looking parts of it up: nothing is in memory before, so
// nothing that is given has to be told from what is known, and a million rows are taken in while
// somebody waits. Their results stay where they are: those of a key are looked up when an epoch first
// has to do with it.

// LoadRows takes live rows into memory. All that are stored must be given before the first epoch,
// unless the state began as spilled.
func (s *State) LoadRows(rows []stream.BufferRow) {
	s.cached += int64(len(rows))
	taken := make([]row, len(rows))
	for len(rows) > 0 {
		n := min(len(rows), nearMax)
		s.loadNear(rows[:n], taken[:n])
		rows, taken = rows[n:], taken[n:]
	}
}

// near is what a few rows that are loaded together will look up. Reading all of that first is faster:
// the processor then waits for memory once for several of them, as long as they are few enough for what
// was read to be still at hand.
type near struct {
	ids, keys [nearMax]uint64
	// read keeps the compiler from leaving out what is read for nothing else.
	read uint64
}

const nearMax = 32

func (s *State) loadNear(rows []stream.BufferRow, taken []row) {
	n := &s.near
	for i := range rows {
		n.ids[i], n.keys[i] = hashOf(rows[i].ID), hashOf(rows[i].Key)
	}
	for i := range rows {
		n.read += s.ids[rows[i].Side].first(n.ids[i]).hash
		if slot := s.groups.first(n.keys[i]); slot.hash == n.keys[i] && slot.value.key != "" {
			n.read += uint64(slot.value.key[0])
		}
	}
	for i := range rows {
		r := &taken[i]
		r.BufferRow = rows[i]
		r.marker = !s.cfg.owns(r.Key)
		s.ids[r.Side].putHashed(r, n.ids[i])
		g := s.groupOf(r.Key, n.keys[i])
		s.insertInto(g, r)
		if !g.unlinked {
			g.unlinked = true
			s.unlinked++
		}
	}
}

// needResults adds the results of a group's rows, if they are not known, to what is needed.
func (s *State) needResults(g *group, needs *stream.Needs) {
	if g == nil || !g.unlinked {
		return
	}
	if _, asked := s.linking[g]; asked {
		return
	}
	s.linking[g] = struct{}{}
	for side := range g.sides {
		for _, r := range g.sides[side] {
			needs.Results[side] = append(needs.Results[side], r.ID)
		}
	}
}

// needDueResults does so for the rows that may close in the epoch of the batch, each record of which
// can replace one of them.
func (s *State) needDueResults(b *stream.Batch, needs *stream.Needs) {
	to, limit := s.dueMost(b, s.reachable(b))
	var due []timer
	s.eachDue(to, min(limit, math.MaxInt-b.Records())+b.Records(), func(t timer) {
		due = append(due, t)
	})
	for _, t := range due {
		s.needResults(t.row.group, needs)
		s.timers.push(t)
	}
}

// link makes the groups whose results were asked for ones whose results are known. Their rows are
// added to those that results are linked to.
func (s *State) link(fresh map[*row]nearness) {
	for g := range s.linking {
		g.unlinked = false
		s.unlinked--
		for side := range g.sides {
			for _, r := range g.sides[side] {
				fresh[r] = buffered
			}
		}
	}
	clear(s.linking)
}
