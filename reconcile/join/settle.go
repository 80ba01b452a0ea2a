package join

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// settle gives every row that the epoch touched the unmatched row it should have at the new
// watermark, and lets the rows whose horizon has passed leave the buffer.
func (s *State) settle() {
	for _, r := range s.work.touched {
		if r.phase == live || r.phase == sealed {
			s.settleOnly(r)
		}
	}
	for _, r := range s.work.touched {
		switch {
		case r.phase == live && r.Horizon < s.watermark:
			s.expire(r)
		case r.phase == sealed:
			s.leave(r)
		}
	}
	for _, r := range s.work.expired {
		if r.Horizon < s.watermark {
			s.countExpired(r)
		}
	}
}

// settleOnly moves the row's unmatched row to where it belongs.
func (s *State) settleOnly(r *row) {
	want := s.wanted(r)
	if want == r.only {
		return
	}
	if r.group != nil {
		// A window that closes changes a row of a key that nothing else touched.
		r.group.touched = s.epoch
	}
	o := outcome{pair: alone(r), status: want.status(), fresh: r.onlyFresh}
	switch {
	case want == none:
		o.status, o.cause = stream.Retracted, stream.CausePartnerArrived
		s.work.withdrawn = append(s.work.withdrawn, o)
		r.only = none
		return
	case r.lost == s.epoch:
		o.cause = stream.CausePartnerWithdrew
	case want == final:
		o.cause = stream.CauseHorizonPassed
	default:
		o.cause = stream.CauseUnmatched
	}
	s.work.opened = append(s.work.opened, o)
	r.only, r.onlyFresh = want, false
}

// wanted is where the row's unmatched row stands at the new watermark.
func (s *State) wanted(r *row) standing {
	switch {
	case !r.joins(), len(r.partners) > 0, !s.cfg.keepsUnmatched(r.Side):
		return none
	case s.watermark > r.Horizon:
		return final
	case r.only == provisional, s.cfg.Provisional == Eager:
		return provisional
	case s.cfg.Provisional == AtWindowClose && s.watermark > s.cfg.windowEnd(r.Side, r.Time):
		return provisional
	}
	return none
}

// expire lets a row leave the buffer: sealed under an active result, else unknown again.
func (s *State) expire(r *row) {
	s.countExpired(&r.BufferRow)
	for _, p := range r.partners {
		if p.phase != live {
			r.group.pairs--
			s.depart(p)
		}
	}
	s.remove(r)
	s.cached--
	r.phase = sealed
	s.leave(r)
}

func (s *State) countExpired(r *stream.BufferRow) {
	s.work.delta.Counts.Expired++
	s.work.delta.Expired = append(s.work.delta.Expired, r)
	s.buffered--
}

// leave settles a row that has left the buffer by the results it has now.
func (s *State) leave(r *row) {
	if r.only == none && len(r.partners) == 0 {
		r.phase = gone
	}
	s.depart(r)
}

// finish turns the epoch's work into its delta: withdrawals first, then publications, each by
// identity, so that the same epoch always writes the same rows in the same order.
func (s *State) finish() *stream.Delta {
	d := s.work.delta
	d.WatermarkAfter = s.watermark
	d.Counts.Buffered = s.buffered
	d.Added = make([]stream.BufferRow, len(s.work.added))
	for i, r := range s.work.added {
		d.Added[i] = r.BufferRow
	}
	for _, p := range s.work.joined {
		s.work.opened = append(s.work.opened,
			outcome{pair: p, status: stream.Matched, cause: stream.CauseJoined, fresh: true})
	}
	d.Changes = make([]stream.Change, 0, len(s.work.withdrawn)+len(s.work.opened))
	d.Changes = s.appendChanges(d.Changes, s.work.withdrawn)
	d.Changes = s.appendChanges(d.Changes, s.work.opened)
	for i := range d.Changes {
		d.Counts.Count(d.Changes[i].Status)
	}
	return d
}

func (s *State) appendChanges(changes []stream.Change, outcomes []outcome) []stream.Change {
	type keyed struct {
		id    stream.MatchID
		head  uint64
		index int
	}
	order := make([]keyed, len(outcomes))
	for i := range outcomes {
		id := Identity(members(outcomes[i].pair, s.cfg.Version))
		order[i] = keyed{id, binary.BigEndian.Uint64(id[:8]), i}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		if c := cmp.Compare(a.head, b.head); c != 0 {
			return c
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	for _, k := range order {
		o := &outcomes[k.index]
		changes = append(changes, stream.Change{
			Result: s.result(o, k.id), Cause: o.cause, Fresh: o.fresh,
		})
	}
	return changes
}

func members(p pair, version string) (left, right stream.Member, _ string) {
	if p.left != nil {
		left = p.left.member()
	}
	if p.right != nil {
		right = p.right.member()
	}
	return left, right, version
}

func (s *State) result(o *outcome, id stream.MatchID) stream.Result {
	r := stream.Result{MatchID: id, Status: o.status}
	r.Left, r.Right, _ = members(o.pair, "")
	switch {
	case o.right == nil:
		r.Kind, r.Key, r.Horizon = stream.LeftOnly, o.left.Key, o.left.Horizon
	case o.left == nil:
		r.Kind, r.Key, r.Horizon = stream.RightOnly, o.right.Key, o.right.Horizon
	default:
		r.Kind, r.Key = stream.Pair, o.left.Key
		r.Horizon = max(o.left.Horizon, o.right.Horizon)
	}
	if o.status == stream.Matched {
		r.Verdict, r.Differences = s.cfg.Compare.Compare(o.left.Attributes, o.right.Attributes)
	}
	if o.status.Active() {
		s.remember(o.pair)
	}
	return r
}

// remember notes that these ids have had a result.
func (s *State) remember(p pair) {
	if p.left != nil {
		s.since.Add(stream.Left, p.left.ID)
	}
	if p.right != nil {
		s.since.Add(stream.Right, p.right.ID)
	}
}
