package join

import (
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// attach takes what was found into memory. Memory is newer than the store by the epoch in flight,
// so what it already knows of an id or a key stands.
func (s *State) attach(found *stream.Found) {
	if found == nil {
		return
	}
	fresh := s.attachRows(found.Rows)
	s.link(fresh)
	for i := range found.Expired {
		r := &found.Expired[i]
		if s.ids[r.Side].get(r.ID) == nil && !s.holds(r.Key) {
			s.work.expired = append(s.work.expired, r)
		}
	}
	// First the results of live rows, whose keys are held whole: a partner that is not among them
	// has left the buffer. Then what else those partners are paired with.
	for _, near := range []nearness{buffered, partner} {
		for i := range found.Results {
			s.attachResult(&found.Results[i], fresh, near)
		}
	}
	for i := range found.Results {
		s.attachSealed(stream.Left, found.Results[i].Left, found.Results[i].Key)
		s.attachSealed(stream.Right, found.Results[i].Right, found.Results[i].Key)
	}
}

// nearness says how a row that is being taken in was come by; the zero value is a row that memory
// already had.
type nearness uint8

const (
	buffered nearness = iota + 1 // a live row
	partner                      // the partner of a live row, itself no longer live
	distant                      // a partner of such a partner
)

// attachRows takes in live rows and returns those that were not in memory.
func (s *State) attachRows(rows []stream.BufferRow) map[*row]nearness {
	fresh := make(map[*row]nearness, len(rows))
	held := map[string]bool{}
	for i := range rows {
		b := &rows[i]
		known, asked := held[b.Key]
		if !asked {
			known = s.holds(b.Key)
			held[b.Key] = known
		}
		if known || s.ids[b.Side].get(b.ID) != nil {
			continue
		}
		r := &row{BufferRow: *b, marker: !s.cfg.owns(b.Key)}
		s.ids[b.Side].put(r)
		s.insert(r)
		s.cached++
		fresh[r] = buffered
	}
	return fresh
}

// holds tells whether all live rows of a key are in memory. Tombstones without a key, and markers, have
// no partners: each is known by its id alone.
func (s *State) holds(key string) bool {
	return key != "" && s.cfg.owns(key) && s.groups.get(key) != nil
}

// attachResult links one active result to the fresh rows among its members, if the nearer of them
// is as near as this.
func (s *State) attachResult(result *stream.Result, fresh map[*row]nearness, near nearness) {
	left, right := s.ids[stream.Left].get(result.Left.ID), s.ids[stream.Right].get(result.Right.ID)
	if nearer(fresh[left], fresh[right]) != near {
		return
	}
	switch result.Kind {
	case stream.LeftOnly:
		left.only = standingOf(result)
		return
	case stream.RightOnly:
		right.only = standingOf(result)
		return
	}
	left = s.attachMember(stream.Left, result.Left, result.Key, fresh, near+1)
	right = s.attachMember(stream.Right, result.Right, result.Key, fresh, near+1)
	if fresh[left] != 0 {
		left.partners = append(left.partners, right)
	}
	if fresh[right] != 0 {
		right.partners = append(right.partners, left)
	}
	if g := pairGroup(left, right); g != nil {
		g.pairs++
	}
}

func standingOf(only *stream.Result) standing {
	if only.Status == stream.Final {
		return final
	}
	return provisional
}

// nearer gives the nearer of two rows that are being taken in, 0 when neither is.
func nearer(a, b nearness) nearness {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// attachMember gives the row of a pair's member; one that is not in memory has left the buffer.
func (s *State) attachMember(
	side stream.Side, m stream.Member, key string, fresh map[*row]nearness, near nearness,
) *row {
	r := s.ids[side].get(m.ID)
	switch {
	case r == nil:
		r = s.newSealed(side, m, key)
	case !r.bare:
		return r
	}
	r.bare = false
	fresh[r] = near
	return r
}

// attachSealed notes that an id asked for has left the buffer with an active result. Nothing else
// of it is known, nor needed.
func (s *State) attachSealed(side stream.Side, m stream.Member, key string) {
	if _, asked := s.asked[side][m.ID]; asked && s.ids[side].get(m.ID) == nil {
		s.newSealed(side, m, key).bare = true
	}
}

func (s *State) newSealed(side stream.Side, m stream.Member, key string) *row {
	r := &row{phase: sealed, BufferRow: stream.BufferRow{
		Side:    side,
		Event:   stream.Event{ID: m.ID, Revision: m.Revision, Key: key, Time: m.Time, HasTime: true},
		Horizon: s.cfg.horizon(side, m.Time),
	}}
	s.ids[side].put(r)
	s.depart(r)
	return r
}

// pairGroup is the group that counts a pair: that of a member that is live.
func pairGroup(left, right *row) *group {
	if left.group != nil {
		return left.group
	}
	return right.group
}

// insert puts a live row into the group of its key.
func (s *State) insert(r *row) {
	g := s.groupOf(r.Key, hashOf(r.Key))
	s.touch(g)
	s.insertInto(g, r)
}

// groupOf gives the group of a key, a new one where there is none.
func (s *State) groupOf(key string, hash uint64) *group {
	g := s.groups.getHashed(key, hash)
	if g == nil {
		g = &group{key: key}
		s.groups.putHashed(g, hash)
		s.recent.push(g)
	}
	return g
}

// insertInto puts a live row into a group and sets its timer.
func (s *State) insertInto(g *group, r *row) {
	r.group = g
	if !r.joins() {
		g.silent = append(g.silent, r)
	} else {
		side := &g.sides[r.Side]
		if *side == nil {
			*side = g.alone[r.Side][:0]
		}
		at, _ := slices.BinarySearchFunc(*side, r.Time, func(o *row, t stream.Micros) int {
			if o.Time <= t {
				return -1
			}
			return 1
		})
		*side = slices.Insert(*side, at, r)
	}
	s.timers.push(timer{at: s.firstTimer(r), row: r})
}

// remove takes a row out of its group; its timer dies by itself.
func (s *State) remove(r *row) {
	g := r.group
	r.group = nil
	s.touch(g)
	list := &g.sides[r.Side]
	if !r.joins() {
		list = &g.silent
	}
	at := slices.Index(*list, r)
	*list = slices.Delete(*list, at, at+1)
	if g.empty() {
		s.leaving = append(s.leaving, departure{epoch: s.epoch, group: g})
	}
}

// touch keeps the group in memory until the epoch being joined is committed.
func (s *State) touch(g *group) {
	g.touched = s.epoch
	s.recent.moveToFront(g)
}

// depart lets the row leave memory once the epoch being joined is committed.
func (s *State) depart(r *row) {
	s.leaving = append(s.leaving, departure{epoch: s.epoch, row: r})
}

// Committed tells the state that the epochs up to this one are stored. What was kept only for
// their sake leaves memory, and keys beyond CacheRows, the least recently used first.
func (s *State) Committed(epoch int64) {
	due := 0
	for due < len(s.leaving) && s.leaving[due].epoch <= epoch {
		if d := s.leaving[due]; d.row != nil {
			s.forget(d.row, epoch)
		} else if d.group.empty() && s.groups.get(d.group.key) == d.group {
			s.evict(d.group, epoch)
		}
		due++
	}
	s.leaving = slices.Delete(s.leaving, 0, due)
	if s.spilling && s.complete() && s.Held() < s.cfg.CacheRows/2 {
		s.spilling = false
	}
	for g := s.recent.last; g != nil && s.spilling && s.Held() > s.cfg.CacheRows; {
		before := g.prev
		if g.touched <= epoch {
			s.evict(g, epoch)
		}
		g = before
	}
	if dead := len(s.timers) - int(s.cached); dead > int(s.cached)+1024 {
		s.timers.compact()
	}
}

// forget drops a row that has left the buffer, unless a live row is still its partner: then its
// results can still change, and it departs with the last of them. What a later epoch made of it is
// not yet stored, and it departs with that.
func (s *State) forget(r *row, committed int64) {
	if r.touched > committed {
		return
	}
	if r.phase == sealed && slices.ContainsFunc(r.partners, func(p *row) bool { return p.phase == live }) {
		return
	}
	if r.phase != live && s.ids[r.Side].get(r.ID) == r {
		s.ids[r.Side].delete(r.ID)
	}
}

// evict drops a whole key from memory, with the rows that are held only as its partners.
func (s *State) evict(g *group, committed int64) {
	if !g.empty() {
		s.since.AddKey(g.key)
	}
	for _, list := range [][]*row{g.sides[0], g.sides[1], g.silent} {
		for _, r := range list {
			r.phase = evicted
			s.since.Add(r.Side, r.ID)
			r.group = nil
			s.ids[r.Side].delete(r.ID)
			s.cached--
		}
		for _, r := range list {
			for _, p := range r.partners {
				s.forget(p, committed)
			}
			r.partners = nil
		}
	}
	if g.unlinked {
		s.unlinked--
	}
	s.recent.remove(g)
	s.groups.delete(g.key)
}

// groupList orders groups by use, the most recent first.
type groupList struct{ first, last *group }

func (l *groupList) push(g *group) {
	g.prev, g.next = nil, l.first
	if l.first != nil {
		l.first.prev = g
	} else {
		l.last = g
	}
	l.first = g
}

func (l *groupList) remove(g *group) {
	if g.prev != nil {
		g.prev.next = g.next
	} else {
		l.first = g.next
	}
	if g.next != nil {
		g.next.prev = g.prev
	} else {
		l.last = g.prev
	}
	g.prev, g.next = nil, nil
}

func (l *groupList) moveToFront(g *group) {
	if l.first != g {
		l.remove(g)
		l.push(g)
	}
}
