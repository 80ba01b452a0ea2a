package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// event makes the next event: a new id, a revision, a tombstone, or one that was there before.
func (g *generator) event() made {
	side := stream.Side(g.rng.IntN(2))
	number := g.rng.IntN(g.ids)
	id := fmt.Sprintf("%s%d", [2]string{"o", "i"}[side], number)
	older := g.of(side, id)
	lane := g.lane(side, number)
	if len(older) > 0 {
		switch roll := g.rng.IntN(100); {
		case roll < 12:
			return g.again(pick(g.rng, older...), lane)
		case roll < 18 && g.h.Flavour == Adversarial:
			return g.conflict(pick(g.rng, older...), lane)
		}
	}
	e := made{side: side, lane: lane, Event: stream.Event{
		ID: id, Revision: g.revision(older), HasTime: true, Attributes: g.attributes(),
	}}
	e.Key, e.Time = g.keyAndTime(side, older)
	if len(older) > 0 && g.oneIn(5) || g.oneIn(25) {
		g.makeTombstone(&e)
	}
	return e
}

// again is an exact duplicate, in its lane or another.
func (g *generator) again(e made, lane int) made {
	if g.oneIn(3) {
		e.lane = lane
	}
	return e
}

// conflict is the same revision with other content.
func (g *generator) conflict(e made, lane int) made {
	e.lane = lane
	switch {
	case e.HasTime && g.oneIn(3):
		e.Time++
	case e.Key != "" && g.oneIn(2):
		e.Key += "x"
	case e.HasTime && e.Key != "" && g.oneIn(3):
		e.Deleted = !e.Deleted
	default:
		e.Attributes = `{"conflict":true}`
	}
	return e
}

func (g *generator) makeTombstone(e *made) {
	e.Deleted = true
	if g.oneIn(2) {
		e.Attributes = "{}"
	}
	if g.oneIn(3) {
		e.Time, e.HasTime = 0, false
	}
	if g.oneIn(3) {
		e.Key = ""
	}
}

// revision is mostly the next one; else it skips some, or comes after a higher one.
func (g *generator) revision(older []made) int64 {
	if len(older) == 0 {
		return pick(g.rng, int64(1), 1, 1, 3, 0, -2)
	}
	highest := older[0].Revision
	for _, o := range older {
		highest = max(highest, o.Revision)
	}
	switch g.rng.IntN(8) {
	case 0:
		return highest + 2 + g.rng.Int64N(3)
	case 1:
		lower := highest - 1 - g.rng.Int64N(3)
		taken := slices.ContainsFunc(older, func(o made) bool { return o.Revision == lower })
		if !taken || g.h.Flavour == Adversarial {
			return lower
		}
	}
	return highest + 1
}

func (g *generator) attributes() string {
	return pick(g.rng, "{}", fmt.Sprintf(`{"amount":"%d.50"}`, g.rng.IntN(3)))
}

// keyAndTime keeps an older revision's, meets another event on purpose, or takes what comes.
func (g *generator) keyAndTime(s stream.Side, older []made) (string, stream.Micros) {
	key, at := fmt.Sprintf("k%d", g.rng.IntN(g.keys)), g.time()
	if len(older) > 0 && older[len(older)-1].HasTime && g.oneIn(2) {
		last := older[len(older)-1]
		if g.oneIn(2) {
			at = last.Time
		}
		if last.Key != "" && !g.oneIn(4) {
			key = last.Key
		}
		return key, at
	}
	if others := g.recentWithTime(s.Other()); len(others) > 0 && g.oneIn(3) {
		other := pick(g.rng, others...)
		if other.Key != "" {
			key = other.Key
		}
		return key, g.onBound(s, other.Time)
	}
	return key, at
}

// onBound gives a time for an event of side s on a bound of the window around a partner's time, or
// a microsecond beside it, or on the time itself.
func (g *generator) onBound(s stream.Side, partner stream.Micros) stream.Micros {
	rule := g.h.Rule
	low, high := partner.Add(-rule.Before), partner.Add(rule.After)
	if s == stream.Left {
		low, high = partner.Add(-rule.After), partner.Add(rule.Before)
	}
	return pick(g.rng, low, high, partner) + pick(g.rng, stream.Micros(-1), 0, 0, 1)
}

func (g *generator) time() stream.Micros {
	rule := g.h.Rule
	allowed := max(rule.OutOfOrderness[0], rule.OutOfOrderness[1]) + rule.Lateness
	beside := pick(g.rng, stream.Micros(-1), 0, 0, 1)
	switch roll := g.rng.IntN(100); {
	case roll < 12:
		if w := g.watermark(); w.Finite() {
			return pick(g.rng, w, w.Add(-rule.Lateness)) + beside
		}
	case roll < 30:
		return g.now.Add(-g.upTo(allowed))
	case roll < 36:
		return g.now.Add(-allowed - g.upTo(rule.Before+rule.After+3*time.Second))
	case roll < 40 && g.h.Flavour == Adversarial:
		return g.now.Add(pick(g.rng, rule.MaxSkew, rule.MaxSkew+time.Second, rule.MaxAhead)) + beside
	}
	return g.now
}

// watermark is the low watermark if every event so far was accepted in an epoch of its own.
func (g *generator) watermark() stream.Micros {
	lowest := stream.Infinity
	for lane := range g.h.Lanes {
		lowest = min(lowest, g.bound(lane))
	}
	return lowest
}

// recentWithTime gives the last few events of a side that have a time.
func (g *generator) recentWithTime(s stream.Side) []made {
	var found []made
	for i := len(g.made) - 1; i >= 0 && len(found) < 8; i-- {
		if e := g.made[i]; e.side == s && e.HasTime {
			found = append(found, e)
		}
	}
	return found
}
