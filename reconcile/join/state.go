package join

import (
	"slices"
	"strings"
	"time"

	"github.com/tallystick/tallystick/reconcile/compare"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// Config fixes how a State joins.
type Config struct {
	Rule
	// Compare gives the verdicts on pairs; nil for none.
	Compare *compare.Comparer
	// MaxAhead quarantines events further ahead of the clock; MaxSkew keeps them from moving the
	// watermark.
	MaxAhead, MaxSkew time.Duration
	// MaxPairsPerKey bounds the active pairs of one key that are held in memory; a new event that
	// would pass it is quarantined as hot_key.
	MaxPairsPerKey int
	// PairsMax is how many pairs one epoch may publish: Cut shortens a batch that would make more. 0
	// is no bound.
	PairsMax int
	// CacheRows bounds the rows held in memory between epochs.
	CacheRows int
	// ClosingsMax bounds the rows that close in one epoch: the watermark moves on in the next.
	ClosingsMax int
	// OutOfOrderness and IdleAfter are by side. IdleAfter 0 is off.
	OutOfOrderness, IdleAfter [2]time.Duration
	// Shard is the shard that the State joins, of Shards; with 0 or 1 of them it owns every key.
	Shard, Shards int32
}

// Start is the stored state a State goes on from.
type Start struct {
	Epoch     int64
	Watermark stream.Micros
	// Buffered counts the live buffer rows.
	Buffered int64
	// Spilled tells that they are all marked as spilled, so that they need not be loaded.
	Spilled  bool
	Progress []stream.Progress
}

// State joins epoch after epoch. It is not safe for concurrent use.
//
// Rows in memory are live rows of whole keys: a key is held with all its live rows of both sides
// and their results, or not at all. Beside them are rows that have left the buffer but can still
// be partners of live ones, or whose leaving is not yet committed.
type State struct {
	cfg       Config
	epoch     int64
	watermark stream.Micros
	// target is where the partitions would put the watermark; ClosingsMax can hold it back.
	target stream.Micros
	parts  map[stream.Partition]stream.Progress

	groups *index[*group]
	ids    [2]*index[*row]
	timers timers
	// buffered counts the live rows stored, cached those of them in memory.
	buffered, cached int64
	// spilling is set while keys may leave memory; new rows are then written so that they are
	// found again.
	spilling bool
	recent   groupList
	leaving  []departure
	// unlinked counts the groups in memory whose results are not known, linking holds those of them
	// that the last Needs asked for.
	unlinked int
	linking  map[*group]struct{}
	near     near
	// before and since hold what Seen is to remember: as it was when the state began, nil while that is
	// not known, and what has come to it since.
	before, since *Seen
	// asked are the ids of the last Needs.
	asked [2]map[string]struct{}

	// work is the epoch in progress; its slices are reused.
	work work
}

// phase says where a row stands.
type phase uint8

const (
	live    phase = iota // in the buffer
	sealed               // left the buffer with an active result
	gone                 // left the buffer without one: unknown again
	retired              // replaced by a newer revision
	evicted              // still stored, no longer in memory
)

// standing says where the active unmatched row of a row stands, if it has one.
type standing uint8

const (
	none standing = iota
	provisional
	final
)

func (s standing) status() stream.Status {
	if s == final {
		return stream.Final
	}
	return stream.Provisional
}

// row is one event revision in memory. A start waits for a million of them, and longer the larger
// they are: what is small is kept together.
type row struct {
	stream.BufferRow
	phase phase
	// only is where its active unmatched row stands.
	only standing
	// onlyFresh is true while no unmatched row of it is known to have been written.
	onlyFresh bool
	// marker is true where another shard owns the key: the row keeps older revisions out, no more.
	marker bool
	// bare is true where all that is known of a sealed row is that it is sealed.
	bare bool
	// partners are the other members of its active pairs.
	partners []*row
	group    *group
	// touched and lost are the last epochs that must look at it again, and that took a partner.
	touched, lost int64
}

// joins tells whether the row can have results: it is neither a tombstone nor a marker.
func (r *row) joins() bool { return !r.Deleted && !r.marker }

func (r *row) name() string { return r.ID }

func (r *row) member() stream.Member {
	return stream.Member{ID: r.ID, Revision: r.Revision, Time: r.Time}
}

// group is all live rows of one key.
type group struct {
	key string
	// sides holds the rows that join by time, silent the others.
	sides  [2][]*row
	silent []*row
	// alone is where the row of a side is that has only one.
	alone [2][1]*row
	pairs int
	// unlinked is true while the results of its rows are not known.
	unlinked bool
	// touched is the newest epoch that changed or read it; it stays until that is committed.
	touched    int64
	prev, next *group
}

func (g *group) name() string { return g.key }

func (g *group) empty() bool {
	return len(g.sides[0])+len(g.sides[1])+len(g.silent) == 0
}

// departure is a row, or an empty group, that may leave memory once its epoch is committed.
type departure struct {
	epoch int64
	row   *row
	group *group
}

// New gives a State that goes on from start. Its memory is empty: what it needs it asks for.
func New(cfg Config, start Start) *State {
	expected := 0
	if !start.Spilled {
		expected = int(start.Buffered) / 2 // most rows have a partner, under the same key
	}
	s := &State{
		cfg: cfg, epoch: start.Epoch, watermark: start.Watermark, target: start.Watermark,
		parts:    make(map[stream.Partition]stream.Progress, len(start.Progress)),
		groups:   newIndex[*group](expected),
		timers:   make(timers, 0, 2*expected),
		ids:      [2]*index[*row]{newIndex[*row](expected), newIndex[*row](expected)},
		buffered: start.Buffered,
		linking:  map[*group]struct{}{},
		since:    NewSeen(),
		spilling: start.Spilled,
	}
	for _, p := range start.Progress {
		s.parts[p.Partition] = p
	}
	if len(start.Progress) > 0 {
		s.target = s.lowest(start.Progress)
	}
	if start.Epoch == 0 {
		s.Know(NewSeen())
	}
	return s
}

// Epoch is the newest epoch joined, committed or not.
func (s *State) Epoch() int64 { return s.epoch }

// Watermark is the low watermark after that epoch.
func (s *State) Watermark() stream.Micros { return s.watermark }

// Behind tells whether the watermark was held back by ClosingsMax or by what could be read at
// once: another epoch, even an empty one, moves it on.
func (s *State) Behind() bool { return s.target > s.watermark }

// MustSpill tells that more rows are in memory than CacheRows, and that none may leave it before
// all that is stored has been marked as spilled and Spill was called.
func (s *State) MustSpill() bool { return !s.spilling && s.Held() > s.cfg.CacheRows }

// Spill lets keys leave memory from now on: every live row stored is marked as spilled, and no
// epoch is in flight.
func (s *State) Spill() { s.spilling = true }

// Held counts the rows in memory.
func (s *State) Held() int { return s.ids[stream.Left].len() + s.ids[stream.Right].len() }

// complete tells whether every live row is in memory, so that nothing need be looked up.
func (s *State) complete() bool { return s.cached == s.buffered }

// Needs says what Step must be given to join the batch. What is in memory is not asked for again.
func (s *State) Needs(b *stream.Batch) stream.Needs {
	var n stream.Needs
	complete := s.complete()
	asked := [2]map[string]struct{}{{}, {}}
	s.asked = asked
	clear(s.linking)
	wanted := map[string]struct{}{}
	for i := range b.Parts {
		part := &b.Parts[i]
		for j := range part.Records {
			r := &part.Records[j]
			if r.Reason != "" {
				continue
			}
			known := s.ids[part.Side].get(r.Event.ID)
			switch {
			case known != nil:
				s.needResults(known.group, &n)
			case s.mayBeStored(part.Side, r.Event.ID):
				asked[part.Side][r.Event.ID] = struct{}{}
			}
			if complete && s.unlinked == 0 {
				continue
			}
			key := r.Event.Key
			g := s.groups.get(key)
			s.needResults(g, &n)
			if g == nil && !complete && key != "" && s.cfg.owns(key) && s.mayBeStored(keys, key) {
				wanted[key] = struct{}{}
			}
		}
	}
	n.IDs = [2][]string{sorted(asked[0]), sorted(asked[1])}
	n.Keys = sorted(wanted)
	if !complete {
		n.Due = s.due(s.reachable(b))
		n.DueMax = s.cfg.ClosingsMax + 1 // one more tells where the watermark has to stop
		for _, side := range []stream.Side{stream.Left, stream.Right} {
			n.Keeps[side] = s.cfg.keepsUnmatched(side)
		}
	}
	if s.unlinked > 0 {
		s.needDueResults(b, &n)
	}
	return n
}

// due gives the horizons of rows that close when the watermark moves up to the given one.
func (s *State) due(to stream.Micros) []stream.Range {
	if to <= s.watermark {
		return nil
	}
	due := []stream.Range{{From: s.watermark, To: to}}
	if l := s.cfg.Lateness; l > 0 && s.cfg.Provisional == AtWindowClose && s.cfg.Kind != Inner {
		due = append(due, stream.Range{From: s.watermark.Add(l), To: to.Add(l)})
	}
	return due
}

func sorted(set map[string]struct{}) []string {
	if len(set) == 0 {
		return nil
	}
	list := make([]string, 0, len(set))
	for v := range set {
		list = append(list, v)
	}
	slices.SortFunc(list, strings.Compare)
	return list
}
