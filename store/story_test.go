package store_test

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// story makes epochs as a join would: what they add, replace and let expire, what results come of
// it, and counts that are right. Each epoch pairs two events, leaves one alone, and lets that of the
// epoch before be revised or find its partner; rows expire after three epochs.
type story struct {
	epoch int64
	// live are the rows in the buffer, alone those with an unmatched row.
	live  []stream.BufferRow
	alone map[string]stream.Result
	at    map[stream.Partition]string
}

func newStory() *story {
	return &story{alone: map[string]stream.Result{}, at: map[stream.Partition]string{}}
}

// odd keeps times off whole seconds.
const odd = stream.Micros(123_457)

func (s *story) watermark(epoch int64) stream.Micros {
	if epoch == 0 {
		return stream.NegInfinity
	}
	return stream.Micros(epoch)*tick + odd
}

func (s *story) next() *stream.Delta {
	s.epoch++
	d := &stream.Delta{
		Epoch: s.epoch, Clock: 1_750_000_000_123_456 + stream.Micros(s.epoch),
		WatermarkBefore: s.watermark(s.epoch - 1), WatermarkAfter: s.watermark(s.epoch),
	}
	s.read(d)
	last := fmt.Sprint("m", s.epoch-1)
	key := fmt.Sprintf("ключ %d\u00e9e\u0301", s.epoch)
	left := s.add(d, stream.Left, fmt.Sprint("l", s.epoch), 1, key)
	right := s.add(d, stream.Right, fmt.Sprint("r", s.epoch), -3, key)
	pairs := []stream.Result{s.pair(left, right)}
	s.move(d, last, &pairs)
	s.expire(d)
	lone := s.add(d, stream.Left, fmt.Sprint("m", s.epoch), 1, "lone "+key)
	only := s.only(lone, stream.Provisional)
	s.alone[lone.ID] = only
	d.Changes = append(d.Changes, fresh(only, stream.CauseUnmatched))
	for _, p := range pairs {
		d.Changes = append(d.Changes, fresh(p, stream.CauseJoined))
	}
	if s.epoch%2 == 0 {
		grave := stream.Event{ID: fmt.Sprint("gone", s.epoch), Revision: 1 << 60, Deleted: true}
		s.addRow(d, stream.BufferRow{Side: stream.Right, Event: grave, Horizon: stream.Infinity})
	}
	s.setAside(d)
	s.count(d)
	return d
}

// read moves four partitions; one of them is there in the first epoch only.
func (s *story) read(d *stream.Delta) {
	for _, p := range []stream.Partition{
		{Side: stream.Left, Source: "file", Number: 3},
		{Side: stream.Left, Source: "old", Number: 0},
		{Side: stream.Right, Source: "csv \u00e9", Number: 1},
		{Side: stream.Right, Source: "quarantine", Number: 0},
	} {
		if p.Source == "old" && s.epoch > 1 {
			continue
		}
		progress := stream.Progress{
			Partition: p, From: s.at[p], To: fmt.Sprint(s.epoch * 100), Watermark: d.WatermarkAfter,
			Idle: s.epoch%2 == 0, LastEventAt: d.Clock, Identity: `head "1"` + "\n",
		}
		if p.Source == "quarantine" {
			progress.To, progress.Watermark = "", stream.Infinity
		}
		s.at[p] = progress.To
		d.Progress = append(d.Progress, progress)
	}
}

func (s *story) add(
	d *stream.Delta, side stream.Side, id string, revision int64, key string,
) stream.BufferRow {
	return s.addRow(d, stream.BufferRow{
		Side: side, Horizon: s.watermark(s.epoch + 3), Event: stream.Event{
			ID: id, Revision: revision, Key: key, HasTime: true,
			Time:       s.watermark(s.epoch) - stream.Micros(revision),
			Attributes: `{"amount": 9007199254740993.10,  "note":"q\"\u00e9", "n":[1,  2]}`,
		},
	})
}

func (s *story) addRow(d *stream.Delta, r stream.BufferRow) stream.BufferRow {
	r.Source, r.Number, r.Position, r.AddedEpoch = "file", 3, "at "+r.ID, s.epoch
	d.Added = append(d.Added, r)
	s.live = append(s.live, r)
	return r
}

// move revises the lone event of the epoch before, or lets its partner come.
func (s *story) move(d *stream.Delta, id string, pairs *[]stream.Result) {
	i := slices.IndexFunc(s.live, func(r stream.BufferRow) bool { return r.ID == id })
	if i < 0 {
		return
	}
	row := s.live[i]
	was := s.alone[id]
	delete(s.alone, id)
	if s.epoch%2 == 0 {
		partner := s.add(d, stream.Right, "p"+id, 1, row.Key)
		d.Changes = append(d.Changes, moved(was, stream.Retracted, stream.CausePartnerArrived))
		*pairs = append(*pairs, s.pair(row, partner))
		return
	}
	s.live = slices.Delete(s.live, i, i+1)
	d.Retired = append(d.Retired, &row)
	d.Changes = append(d.Changes, moved(was, stream.Superseded, stream.CauseRevised))
	revised := s.add(d, stream.Left, id, row.Revision+1, row.Key)
	s.alone[id] = s.only(revised, stream.Provisional)
	d.Changes = append(d.Changes, fresh(s.alone[id], stream.CauseUnmatched))
}

// expire lets rows leave whose horizon has passed; one that is alone becomes final.
func (s *story) expire(d *stream.Delta) {
	s.live = slices.DeleteFunc(s.live, func(r stream.BufferRow) bool {
		if r.Horizon >= d.WatermarkAfter {
			return false
		}
		d.Expired = append(d.Expired, &r)
		if only, is := s.alone[r.ID]; is {
			delete(s.alone, r.ID)
			d.Changes = append(d.Changes, moved(only, stream.Final, stream.CauseHorizonPassed))
		}
		return true
	})
}

func (s *story) setAside(d *stream.Delta) {
	from := stream.Partition{Side: stream.Right, Source: "csv \u00e9", Number: 1}
	d.Corrections = []stream.Correction{{
		Partition: from, Event: event("late", "k9", 1), Position: "77", Reason: stream.PastHorizon,
		From: stream.NegInfinity, To: 9 * tick,
	}, {
		Partition: from, Event: stream.Event{ID: "gone", Revision: 2, Deleted: true},
		Position: "78", Reason: stream.SealedRevision, From: 8 * tick, To: stream.Infinity,
	}}
	d.Quarantined = []stream.Quarantined{{
		Partition: from, Position: "79", Reason: stream.NotJSON, Raw: []byte("\x00\xff{"),
	}, {
		Partition: from, Position: "80", Reason: stream.BadTime, Raw: []byte("{}"),
	}}
}

func (s *story) count(d *stream.Delta) {
	n := &d.Counts
	n.Accepted, n.Duplicate, n.Stale, n.OutOfShard = int64(len(d.Added)), 2, 3, 4
	n.Late, n.Quarantined = int64(len(d.Corrections)), int64(len(d.Quarantined))
	n.Read = n.Accepted + n.Duplicate + n.Stale + n.OutOfShard + n.Late + n.Quarantined
	for i := range d.Changes {
		n.Count(d.Changes[i].Status)
	}
	n.Expired, n.Buffered = int64(len(d.Expired)), int64(len(s.live))
}

func (s *story) pair(left, right stream.BufferRow) stream.Result {
	r := pair(left, right)
	r.MatchID = revisions(&left, &right)
	return r
}

func (s *story) only(row stream.BufferRow, status stream.Status) stream.Result {
	r := only(row, status)
	r.MatchID = revisions(&row, nil)
	return r
}

func revisions(a, b *stream.BufferRow) stream.MatchID {
	text := fmt.Sprintf("%s/%d", a.ID, a.Revision)
	if b != nil {
		text += fmt.Sprintf("|%s/%d", b.ID, b.Revision)
	}
	return sha256.Sum256([]byte(text))
}
