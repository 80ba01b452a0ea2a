package store

import (
	"fmt"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// pastCheck follows the transitions of each result, which come in the order of identities and
// epochs, from one status to the next and to where its row stands.
type pastCheck struct {
	*head
	window  int64
	found   *findings
	outputs *outputCheck
	known   map[resultKey]bool

	last   transition
	row    standing
	exists bool
	some   bool
	// opened is the epoch of the newest transition from nothing; chained tells whether any so far
	// is of an epoch that counts, published holds the epochs that published it.
	opened    int64
	chained   bool
	withdrawn bool
	published []int64
}

func (p *pastCheck) seen(key resultKey) {
	if p.known == nil {
		p.known = map[resultKey]bool{}
	}
	p.known[key] = true
}

func (p *pastCheck) add(t *transition, row *standing, exists bool) {
	first := !p.some || t.key != p.last.key
	if first {
		p.end()
		p.row, p.exists, p.some = *row, exists, true
		p.opened, p.chained, p.withdrawn, p.published = 0, false, false, p.published[:0]
	}
	// A rebuild's transition goes out from what served before, which need not be this generation.
	m := p.byEpoch[t.epoch]
	rebuild := t.reason == kindRebuild || m != nil && m.kind == kindRebuild
	name := fmt.Sprintf("%d %d", t.epoch, t.ordinal)
	switch {
	case p.settled(t.epoch):
	case m == nil && !p.covered(t.epoch):
		p.found.note(t.epoch, "match_transition", name, "there is no epoch %d", t.epoch)
	case rebuild:
	case !t.from.Valid && !first && p.chained:
		p.found.note(t.epoch, "match_transition", name,
			"its from_status is null, the result was %s before", p.last.to)
	case t.from.Valid && first && (p.window == 0 || p.row.opened == t.epoch):
		p.found.note(t.epoch, "match_transition", name,
			"its from_status is %s, but it is the first of the result", t.from.String)
	case t.from.Valid && !first && t.from.String != p.last.to:
		p.found.note(t.epoch, "match_transition", name, "its from_status is %s, the result was %s "+
			"before", t.from.String, p.last.to)
	}
	if !t.from.Valid && !rebuild || first && p.row.opened == t.epoch {
		p.opened = t.epoch // also where from_status was damaged
	}
	p.chained = p.chained || !p.covered(t.epoch)
	if stream.Status(t.to).Active() {
		if p.withdrawn {
			for _, epoch := range p.published {
				p.outputs.again[epoch] = true
			}
		}
		p.withdrawn = false
		p.published = append(p.published, t.epoch)
	} else {
		p.withdrawn = true
	}
	p.last = *t
}

// end compares the newest transition of a result with its row.
func (p *pastCheck) end() {
	if !p.some {
		return
	}
	p.some = false
	name := fmt.Sprintf("%x", p.last.key.id[:])
	switch {
	case !p.exists:
		if p.chained {
			p.found.note(rowMissing, "match", name, "it is missing; epoch %d changed it to %s",
				p.last.epoch, p.last.to)
			p.found.note(p.last.epoch, "match_transition",
				fmt.Sprintf("%d %d", p.last.epoch, p.last.ordinal), "there is no result of its bucket and match_id")
		}
	case p.row.status != p.last.to:
		p.found.note(always, "match", name, "its status is %s, its newest transition says %s",
			p.row.status, p.last.to)
	case p.row.changed != p.last.epoch:
		p.found.note(always, "match", name, "its changed_epoch is %d, its newest transition is of "+
			"epoch %d", p.row.changed, p.last.epoch)
	case p.opened != 0 && p.row.opened != p.opened:
		p.found.note(always, "match", name, "its opened_epoch is %d, it was first published in epoch "+
			"%d", p.row.opened, p.opened)
	case p.opened == 0 && p.chained && p.row.opened >= p.window:
		p.found.note(always, "match", name, "its opened_epoch is %d, but it was published before",
			p.row.opened)
	}
}
