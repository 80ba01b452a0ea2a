package torture

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// record is one generated record and what must become of it.
type record struct {
	side     stream.Side
	id       string
	revision int64
	key      string
	at       stream.Micros
	hasTime  bool
	deleted  bool
	line     []byte
	// made is how many records were made before it, and born when, on the generator's clock.
	made int
	born stream.Micros
	// reason is why the record is quarantined, empty for an event; late is that it is set aside.
	reason stream.Reason
	late   bool
}

// workload is both sides' records, each in the order of its source. What becomes of a record does
// not depend on where epochs end: an event is either surely in time, or surely late.
type workload struct{ sides [2][]record }

// generator makes a workload. Its clock is event time; at each tick one side gets one record.
type generator struct {
	*setup
	workload
	rng   *rand.Rand
	now   stream.Micros
	tick  time.Duration
	total int
	made  int
	// highest is the highest event time of each side's records so far.
	highest [2]stream.Micros
	// closed are ids that no further record may come for.
	closed map[string]bool
}

// workloadStart lies far enough back for any window.
var workloadStart = stream.MicrosOf(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))

const (
	tickMin    = time.Second
	keysInPlay = 12
	// furtherPercent is how often one of the recent records gets another of the same id.
	furtherPercent = 45
	recent         = 40
	// spansMin is how many horizons the workload's event time covers at least.
	spansMin = 8
)

func generate(seed uint64, s *setup) *workload {
	total := s.maxEvents * epochsPlanned
	horizon := max(s.rule.Before, s.rule.After) + s.rule.Lateness + s.outOfOrderness
	g := &generator{
		setup: s, rng: rand.New(rand.NewPCG(seed, streamWorkload)), total: total,
		now: workloadStart, highest: [2]stream.Micros{stream.NegInfinity, stream.NegInfinity},
		tick:   max(tickMin, (spansMin * horizon / time.Duration(total)).Truncate(time.Microsecond)),
		closed: map[string]bool{},
	}
	for g.made < total {
		if g.one() {
			g.made++
			g.now = g.now.Add(g.upTo(2 * g.tick))
		}
	}
	for side := range g.sides {
		g.farFuture(stream.Side(side))
	}
	return &g.workload
}

// one makes the next record; false where what was drawn could be late or not.
func (g *generator) one() bool {
	side := stream.Side(g.rng.IntN(2))
	switch roll := g.rng.IntN(100); {
	case roll < 3:
		g.malformed(side)
		return true
	case roll < 6:
		return g.tooLate(side)
	}
	r := record{side: side, revision: 1, hasTime: true}
	if n := min(len(g.sides[side]), recent); n > 0 && g.rng.IntN(100) < furtherPercent {
		r.id = g.sides[side][len(g.sides[side])-1-g.rng.IntN(n)].id
		if older := g.of(side, r.id); len(older) > 0 && !g.closed[r.id] {
			return g.another(r, older)
		}
		return false
	}
	r.id = fmt.Sprintf("%s-%d", side, len(g.sides[side]))
	r.key, r.at = g.keyAndTime(side)
	return g.keep(r, nil)
}

// another makes a further record for an id: a repeat, a contradiction, a revision, a tombstone.
func (g *generator) another(r record, older []record) bool {
	last := older[len(older)-1]
	highest := slices.MaxFunc(older, func(a, b record) int { return int(a.revision - b.revision) })
	switch roll := g.rng.IntN(100); {
	case roll < 20:
		return g.keep(pick(g.rng, older...), older)
	case roll < 26 && !highest.deleted:
		highest.line = nil
		highest.reason = stream.ConflictingRevision
		g.closed[r.id] = g.admissible(highest, older)
		return g.closed[r.id] && g.keep(highest, older)
	case roll < 32 && last.hasTime:
		r.revision = highest.revision - 1 - g.rng.Int64N(2)
		if slices.ContainsFunc(older, func(o record) bool { return o.revision == r.revision }) {
			return false
		}
	default:
		r.revision = highest.revision + 1 + g.rng.Int64N(2)
	}
	r.key, r.at = last.key, last.at
	if g.rng.IntN(2) == 0 || r.key == "" || !last.hasTime {
		r.key, r.at = g.keyAndTime(r.side)
	}
	if g.rng.IntN(4) == 0 {
		r.deleted = true
		if g.rng.IntN(3) == 0 && r.revision > highest.revision {
			r.hasTime, r.key, r.at = false, "", 0
		}
	}
	return g.keep(r, older)
}

// keep adds a record unless some cut into epochs could make it, or an older one, late or unknown.
func (g *generator) keep(r record, older []record) bool {
	if !g.admissible(r, older) {
		return false
	}
	if r.hasTime {
		g.highest[r.side] = max(g.highest[r.side], r.at)
	}
	g.add(r)
	return true
}

// admissible: the low watermark can't be past the watermark of a side that has records to read.
func (g *generator) admissible(r record, older []record) bool {
	bound := g.highest[r.side].Add(-g.outOfOrderness)
	if r.hasTime && r.at.Add(g.rule.Lateness) < bound {
		return false
	}
	for i := range older {
		o := &older[i]
		if o.hasTime && g.horizon(o) < bound {
			return false
		}
		// How long a tombstone without time is remembered depends on the cut, so what it outlives
		// may not follow it.
		if !o.hasTime && r.revision < o.revision {
			return false
		}
	}
	return true
}

func (g *generator) horizon(r *record) stream.Micros {
	window := g.rule.After
	if r.side == stream.Right {
		window = g.rule.Before
	}
	return r.at.Add(window + g.rule.Lateness)
}

// keyAndTime gives what comes, or what lies on a bound of the window around the other side's.
func (g *generator) keyAndTime(side stream.Side) (string, stream.Micros) {
	key := fmt.Sprintf("key-%d", g.rng.IntN(keysInPlay))
	others := g.sides[side.Other()]
	if n := min(len(others), keysInPlay); n > 0 && g.rng.IntN(3) == 0 {
		o := others[len(others)-1-g.rng.IntN(n)]
		if o.reason == "" && !o.late && o.hasTime && o.key != "" {
			return o.key, g.onBound(side, o.at)
		}
	}
	behind := g.outOfOrderness
	if g.rng.IntN(6) == 0 {
		behind += g.rule.Lateness
	}
	return key, g.now.Add(-g.upTo(behind))
}

// onBound gives a time on a bound of the window, or a microsecond outside, or the same time; never
// ahead of the clock, so that no side runs ahead.
func (g *generator) onBound(side stream.Side, partner stream.Micros) stream.Micros {
	low, high := partner.Add(-g.rule.Before), partner.Add(g.rule.After)
	if side == stream.Left {
		low, high = partner.Add(-g.rule.After), partner.Add(g.rule.Before)
	}
	return min(g.now, pick(g.rng, low, low-1, high, high+1, partner))
}

// passed is what the low watermark has surely passed when the next record is read, however the
// epochs are cut. It is judged by the watermark at the start of its epoch, a few epochs' records
// earlier at most; and the other side may be behind by as much as event times stray.
func (g *generator) passed() stream.Micros {
	const epochs = 3
	lowest := stream.Infinity
	stray := g.outOfOrderness + g.rule.Lateness
	for side := range g.sides {
		highest := stream.NegInfinity
		for i := range g.sides[side] {
			r := &g.sides[side][i]
			if r.made <= g.made-epochs*g.maxEvents && r.born <= g.now.Add(-stray) && r.reason == "" &&
				!r.late && r.hasTime {
				highest = max(highest, r.at)
			}
		}
		lowest = min(lowest, highest)
	}
	return lowest.Add(-g.outOfOrderness)
}

// tooLate makes an event that is set aside: a new one, or a revision of one that left the buffer.
func (g *generator) tooLate(side stream.Side) bool {
	passed := g.passed()
	if !passed.Finite() {
		return false
	}
	at := passed.Add(-g.rule.Lateness-g.upTo(4*g.tick)) - 1
	r := record{
		side: side, id: fmt.Sprintf("%s-late-%d", side, len(g.sides[side])), revision: 1,
		key: fmt.Sprintf("key-%d", g.rng.IntN(keysInPlay)), at: at, hasTime: true, late: true,
	}
	if old := g.gone(side, passed); old != nil && g.rng.IntN(2) == 0 {
		r.id, r.key, r.revision = old.id, old.key, old.revision+1
		r.deleted = g.rng.IntN(3) == 0
	}
	g.closed[r.id] = true
	g.add(r)
	return true
}

// gone gives the only record of an id that surely has left the buffer by now.
func (g *generator) gone(side stream.Side, passed stream.Micros) *record {
	for i := range g.sides[side] {
		r := &g.sides[side][i]
		if r.reason == "" && r.hasTime && !r.late && !g.closed[r.id] && g.horizon(r) < passed &&
			len(g.of(side, r.id)) == 1 {
			return r
		}
	}
	return nil
}

// malformed makes a record that is no event.
func (g *generator) malformed(side stream.Side) {
	id := fmt.Sprintf("%s-bad-%d", side, len(g.sides[side]))
	at := g.now.String()
	made := []struct {
		reason stream.Reason
		line   string
	}{
		{stream.NotJSON, fmt.Sprintf(`{%q: %q`, fieldID, id)},
		{stream.NotObject, `[1, 2, 3]`},
		{stream.MissingID, fmt.Sprintf(`{%q: "k", %q: %q, %q: 1}`, fieldKey, fieldTime, at, fieldRevision)},
		{stream.MissingKey, fmt.Sprintf(`{%q: %q, %q: %q, %q: 1}`, fieldID, id, fieldTime, at, fieldRevision)},
		{stream.BadTime, fmt.Sprintf(`{%q: %q, %q: "k", %q: "soon", %q: 1}`, fieldID, id, fieldKey, fieldTime,
			fieldRevision)},
		{stream.BadRevision, fmt.Sprintf(`{%q: %q, %q: "k", %q: %q, %q: 1.5}`, fieldID, id, fieldKey, fieldTime,
			at, fieldRevision)},
	}
	bad := pick(g.rng, made...)
	g.add(record{side: side, reason: bad.reason, line: []byte(bad.line)})
}

// farFuture ends a side with an event that lies too far ahead. Anywhere else it would hold its side
// back until the other is read.
func (g *generator) farFuture(side stream.Side) {
	far := stream.MicrosOf(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))
	g.add(record{
		side: side, id: fmt.Sprintf("%s-far", side), revision: 1, key: "key-0", at: far,
		hasTime: true, reason: stream.FarFuture,
	})
}

// add writes the record's line, unless it repeats one.
func (g *generator) add(r record) {
	r.made, r.born = g.made, g.now
	if r.line == nil {
		r.line = g.encode(&r)
	}
	g.sides[r.side] = append(g.sides[r.side], r)
}

func (g *generator) encode(r *record) []byte {
	object := map[string]any{fieldID: r.id, fieldRevision: r.revision}
	if r.key != "" {
		object[fieldKey] = r.key
	}
	if r.hasTime {
		object[fieldTime] = r.at.String()
	}
	if r.deleted {
		object[fieldDeleted] = true
	} else {
		object[fieldNote] = g.rng.Uint64() // so that no two contents are alike
	}
	for _, c := range g.rule.Compare {
		path := c.Left
		if r.side == stream.Right {
			path = c.Right
		}
		put(object, path, json.Number(fmt.Sprintf("%d.%02d", g.rng.IntN(2), g.rng.IntN(3))))
	}
	line, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("torture: encode a record: %v", err))
	}
	return line
}

// put sets a dotted path.
func put(object map[string]any, path string, value any) {
	for {
		first, rest, nested := strings.Cut(path, ".")
		if !nested {
			object[first] = value
			return
		}
		inner, ok := object[first].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[first] = inner
		}
		object, path = inner, rest
	}
}

// of gives the events of one id so far.
func (g *generator) of(side stream.Side, id string) (found []record) {
	for i := range g.sides[side] {
		if r := &g.sides[side][i]; r.id == id && r.reason == "" && !r.late {
			found = append(found, *r)
		}
	}
	return found
}

// upTo gives a random duration of 0 to d, in whole microseconds.
func (g *generator) upTo(d time.Duration) time.Duration {
	return time.Duration(g.rng.Int64N(d.Microseconds()+1)) * time.Microsecond
}
