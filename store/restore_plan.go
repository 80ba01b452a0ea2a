package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// plan is all that is known of a shard before it goes back.
type plan struct {
	*head
	// base is the chain that verifies, oldest first: the whole one, or what is below the damage.
	base []*storedManifest
	past *bufferPast
	// number is that of the epoch that goes back: higher than any that was ever used.
	number int64
}

// plan looks at everything that is retained. first is what was found before.
func (h *Shard) plan(ctx context.Context, first *findings) (*plan, error) {
	d, err := readHead(ctx, h, h.store.pooled(), h.store.retain)
	if err != nil {
		return nil, err
	}
	for _, f := range first.list {
		if f.Table == "match" { // all else is found again
			d.found.note(f.before, f.Table, f.Row, "%s", f.What)
		}
	}
	d.checkShard()
	d.checkManifests()
	if err := d.checkOffsets(ctx); err != nil {
		return nil, err
	}
	from := d.retainedFrom()
	if _, _, err := d.results(ctx, Thorough, from, &d.found); err != nil {
		return nil, err
	}
	if _, err := d.aside(ctx, from, &d.found); err != nil {
		return nil, err
	}
	if err := d.findFirstEpochs(ctx); err != nil {
		return nil, err
	}
	p := &plan{head: d}
	p.base = d.kept(p.verifiedChain())
	if p.past, err = d.bufferPast(ctx, p.base, &d.found); err != nil {
		return nil, err
	}
	if err := d.explain(ctx, p.past, &d.found); err != nil {
		return nil, err
	}
	p.number, err = p.nextNumber(ctx)
	return p, err
}

// retainedFrom is the first epoch of those that are retained.
func (d *head) retainedFrom() int64 {
	if d.whole || len(d.all) == 0 {
		return 0
	}
	return d.all[0].epoch
}

// verifiedChain gives the newest chain without damage.
func (p *plan) verifiedChain() []*storedManifest {
	for before := p.found.before(); before > 0; {
		newest := p.newest(before)
		if newest == nil {
			return nil
		}
		chain := p.history.chain(newest)
		var wrong findings
		p.checkChain(chain, &wrong)
		if wrong.before() > newest.epoch {
			return chain
		}
		before = wrong.before()
	}
	return nil
}

// findFirstEpochs finds out since when each result exists that is missing, or whose row says
// something else than was written: going back before that helps. What a row says that is withdrawn
// matters to nobody, so that any epoch helps since when it is.
func (d *head) findFirstEpochs(ctx context.Context) error {
	var ids []stream.MatchID
	at := map[stream.MatchID]*finding{}
	for i := range d.found.list {
		if f := &d.found.list[i]; f.before == saidDamaged || f.before == rowMissing {
			id := idOf(f.Row)
			at[id] = f
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	s := d.shard.statement("verify_first_epochs")
	bytesOf(&s.args, ids)
	err := d.query(ctx, s, func() {}, func(v [][]byte) {
		f := at[stream.MatchID(v[0])]
		if f.before == saidDamaged && !stream.Status(v[3]).Active() {
			f.since = readInt8(v[2])
		}
		f.before = readInt8(v[1])
	})
	if err != nil {
		return fmt.Errorf("read since when results exist: %w", err)
	}
	return nil
}

// idOf reads an identity as findings name it.
func idOf(row string) (id stream.MatchID) {
	if b, err := hex.DecodeString(row); err == nil {
		copy(id[:], b)
	}
	return id
}

func (p *plan) nextNumber(ctx context.Context) (number int64, err error) {
	err = p.query(ctx, p.shard.statement("restore_number"), func() {}, func(v [][]byte) {
		number = readInt8(v[0]) + 1
	})
	if err != nil {
		return 0, fmt.Errorf("find the next number of an epoch: %w", err)
	}
	return number, nil
}

// allows tells whether the shard can go back to the epoch at a place of the base.
func (p *plan) allows(i int) bool {
	return p.found.repaired(p.base[i].epoch) && p.past.verifies(i)
}

// target gives the place on the base of the newest epoch to which the shard can go back; -1 for
// none.
func (p *plan) target() int {
	for i := range slices.Backward(p.base) {
		if p.allows(i) {
			return i
		}
	}
	return -1
}
