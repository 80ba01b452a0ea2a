package join

import "github.com/tallystick/tallystick/reconcile/stream"

// Loading a whole state is not the same as looking parts of it up: nothing is in memory before, so
// nothing that is given has to be told from what is known, and a million rows are taken in while
// somebody waits. The rows come first, then the results that have a live member, then the other
// results of those partners of theirs that have left the buffer; each in as many parts as it likes.

// LoadRows takes live rows into memory. All that are stored must be given before the first epoch,
// unless the state began as spilled.
func (s *State) LoadRows(rows []stream.BufferRow) {
	taken := make([]row, len(rows))
	for i := range rows {
		r := &taken[i]
		r.BufferRow = rows[i]
		r.marker = !s.cfg.owns(r.Key)
		s.ids[r.Side].put(r)
		s.insert(r)
	}
	s.cached += int64(len(rows))
}

// LoadResults takes active results that have a live member.
func (s *State) LoadResults(results []stream.Result) { s.link(results, true) }

// Gone gives the ids, by side, of partners of live rows that have left the buffer: their other
// results are still to be given to LoadGone.
func (s *State) Gone() [2][]string {
	gone := s.gone
	s.gone = [2][]string{}
	return gone
}

// LoadGone takes the active results without a live member of events that Gone named.
func (s *State) LoadGone(results []stream.Result) { s.link(results, false) }

func (s *State) link(results []stream.Result, nameGone bool) {
	for i := range results {
		result := &results[i]
		left, right := s.ids[stream.Left].get(result.Left.ID), s.ids[stream.Right].get(result.Right.ID)
		switch {
		case left == nil && right == nil:
			continue
		case result.Kind == stream.LeftOnly:
			left.only = result.Status
			continue
		case result.Kind == stream.RightOnly:
			right.only = result.Status
			continue
		case left == nil:
			left = s.loadSealed(stream.Left, result.Left, result.Key, nameGone)
		case right == nil:
			right = s.loadSealed(stream.Right, result.Right, result.Key, nameGone)
		}
		left.linkTo(right)
		right.linkTo(left)
		if g := pairGroup(left, right); g != nil {
			g.pairs++
		}
	}
}

func (s *State) loadSealed(
	side stream.Side, m stream.Member, key string, nameGone bool,
) *row {
	if nameGone {
		s.gone[side] = append(s.gone[side], m.ID)
	}
	return s.newSealed(side, m, key)
}

// linkTo adds a partner. Most rows have one, which needs no allocation of its own.
func (r *row) linkTo(partner *row) {
	if r.partners == nil {
		r.partners = r.first[:0]
	}
	r.partners = append(r.partners, partner)
}
