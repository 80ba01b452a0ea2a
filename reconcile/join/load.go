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
	taken := make([]row, len(rows))
	hashes := s.bringNear(rows)
	for i := range rows {
		r := &taken[i]
		r.BufferRow = rows[i]
		r.marker = !s.cfg.owns(r.Key)
		s.ids[r.Side].putHashed(r, hashes[i])
		s.insert(r)
		if !r.group.unlinked {
			r.group.unlinked = true
			s.unlinked++
		}
	}
	s.cached += int64(len(rows))
}

// bringNear gives the hashes of the rows' ids, and reads what look-ups of ids and keys will read.
func (s *State) bringNear(rows []stream.BufferRow) []uint64 {
	hashes, keys := make([]uint64, len(rows)), make([]uint64, len(rows))
	for i := range rows {
		hashes[i], keys[i] = hashOf(rows[i].ID), hashOf(rows[i].Key)
	}
	for i := range rows {
		s.read += s.ids[rows[i].Side].near(hashes[i])
		s.read += s.groups.near(keys[i])
	}
	return hashes
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
