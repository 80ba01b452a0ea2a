package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// transition is a row of match_transition with what its result's row has to do with it.
type transition struct {
	epoch   int64
	ordinal int32
	key     resultKey
	from    pgtype.Text
	to      string
	reason  string
}

// standing is where a result's row stands, and the hash of what it says.
type standing struct {
	said            rowHash
	status          string
	opened, changed int64
	// bad is set when the row says something else than was written.
	bad bool
}

func readTransition(v [][]byte) transition {
	return transition{
		epoch: readInt8(v[0]), ordinal: readInt4(v[1]), key: readResultKey(v[2:]),
		from: optional(v[4]), to: string(v[5]), reason: string(v[6]),
	}
}

// results checks the transitions of the window, which must agree with the rows of their results and
// with the manifests, and the hash of each of those rows. A thorough one first reads the active
// results that have a live member, and all that say that they changed in the window.
func (d *head) results(
	ctx context.Context, depth Depth, window int64, found *findings,
) (rows, transitions int64, err error) {
	changed := map[resultKey]standing{}
	if depth == Thorough {
		rows, err = d.readResults(ctx, window, changed, found)
		if err != nil {
			return rows, 0, fmt.Errorf("read the results: %w", err)
		}
	}
	list, err := d.readTransitions(ctx, window)
	if err != nil {
		return rows, 0, fmt.Errorf("read the transitions: %w", err)
	}
	if err := d.readMissing(ctx, list, changed, found); err != nil {
		return rows, 0, fmt.Errorf("read the results of transitions: %w", err)
	}
	slices.SortFunc(list, func(a, b transition) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), bytes.Compare(a.key.id[:], b.key.id[:]))
	})
	outputs := newOutputCheck(d, window, found)
	for i := range list {
		row, exists := changed[list[i].key]
		outputs.add(&list[i], &row, exists)
	}
	slices.SortFunc(list, func(a, b transition) int {
		return cmp.Or(a.key.compare(b.key), cmp.Compare(a.epoch, b.epoch),
			cmp.Compare(a.ordinal, b.ordinal))
	})
	past := &pastCheck{head: d, window: window, found: found, outputs: outputs}
	for i := range list {
		row, exists := changed[list[i].key]
		past.add(&list[i], &row, exists)
		past.seen(list[i].key)
	}
	past.end()
	d.checkUnexplained(window, changed, past, found)
	outputs.end()
	return rows, int64(len(list)), nil
}

func (d *head) readResults(
	ctx context.Context, window int64, changed map[resultKey]standing, found *findings,
) (rows int64, err error) {
	s := d.shard.statement("verify_active")
	s.args.time(d.tip().after)
	s.args.int8(window)
	var dec decoder
	var here findings
	reset := func() {
		rows, dec, here = 0, decoder{shard: d.shard}, findings{}
		clear(changed)
	}
	err = d.query(ctx, s, reset, func(v [][]byte) {
		rows++
		row := d.standing(&dec, v, &here)
		if row.changed >= window {
			changed[readResultKey(v[2:])] = row
		}
	})
	found.merge(&here)
	return rows, err
}

// CheckRest reads what a quick start leaves unread, as of one moment: every active result of a live
// row, and the results, corrections and quarantined records of the newest epochs. It returns a
// *DamageError when one of them is not what was written; it may run beside the work.
func (h *Shard) CheckRest(ctx context.Context) error {
	var found findings
	err := h.store.retry(ctx, func() error {
		return h.snapshot(ctx, func(q query) error {
			d, err := readHead(ctx, h, q, h.store.retain)
			if err != nil {
				return err
			}
			found = findings{}
			window := d.window()
			if _, _, err = d.results(ctx, Thorough, window, &found); err == nil {
				_, err = d.aside(ctx, window, &found)
			}
			return err
		})
	})
	if err == nil {
		err = damageError(found.damage())
	}
	if err != nil {
		return fmt.Errorf("check the rest of shard %d: %w", h.shard, err)
	}
	return nil
}

// standing checks a row of the statements that read results.
func (d *head) standing(dec *decoder, v [][]byte, found *findings) standing {
	said, stands := dec.hashResult(v[:2], v[2:])
	row := standing{
		said: said, status: statusText(v[5]), changed: readInt8(v[14]), opened: readInt8(v[16]),
	}
	name, hash := fmt.Sprintf, v[15]
	switch {
	case !bytes.Equal(said[:], hash[:16]):
		row.bad = true
		found.note(saidDamaged, "match", name("%x", v[3]), "its row_hash is not that of its columns")
	case !bytes.Equal(stands[:], hash[16:]):
		found.note(always, "match", name("%x", v[3]),
			"its row_hash is not that of its status and changed_epoch")
	}
	return row
}

// These stand for the epoch that first published a result, which is looked up when the shard goes
// back: of a row that says something else than was written, and of one that is missing. Without any
// transition the row is nobody's, and goes.
const (
	saidDamaged = always - 1
	rowMissing  = always - 2
)

// statusText gives one text for each status, so that rows don't allocate theirs.
func statusText(v []byte) string {
	switch string(v) {
	case string(stream.Matched):
		return string(stream.Matched)
	case string(stream.Provisional):
		return string(stream.Provisional)
	case string(stream.Final):
		return string(stream.Final)
	case string(stream.Retracted):
		return string(stream.Retracted)
	case string(stream.Superseded):
		return string(stream.Superseded)
	}
	return string(v)
}

func (d *head) readTransitions(ctx context.Context, window int64) (list []transition, err error) {
	s := d.shard.statement("verify_transitions")
	s.args.int8(window)
	err = d.query(ctx, s, func() { list = nil }, func(v [][]byte) {
		list = append(list, readTransition(v))
	})
	return list, err
}

// readMissing looks up the rows of transitions that are not among those that changed in the window.
func (d *head) readMissing(
	ctx context.Context, list []transition, changed map[resultKey]standing, found *findings,
) error {
	var keys []resultKey
	asked := map[resultKey]bool{}
	for i := range list {
		key := list[i].key
		if _, known := changed[key]; !known && !asked[key] {
			asked[key] = true
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	s := d.shard.statement("verify_results_by_key")
	addKeys(&s.args, keys)
	dec := decoder{shard: d.shard}
	return d.query(ctx, s, func() {}, func(v [][]byte) {
		changed[readResultKey(v[2:])] = d.standing(&dec, v, found)
	})
}

// checkUnexplained names rows that changed in the window by no transition.
func (d *head) checkUnexplained(
	window int64, changed map[resultKey]standing, past *pastCheck, found *findings,
) {
	for key, row := range changed {
		if row.changed >= window && !past.known[key] {
			found.note(always, "match", fmt.Sprintf("%x", key.id[:]),
				"no transition says that it changed in epoch %d", row.changed)
		}
	}
}

// outputCheck compares the transitions of each epoch, which come in the order of epochs and
// identities, with what its manifest says of them.
type outputCheck struct {
	*head
	window int64
	found  *findings

	epoch int64
	count map[int64]int64
	// last holds the highest ordinal.
	last    map[int64]int64
	counts  stream.Counts
	output  hash.Hash
	scratch []byte
	// differ are the epochs whose digest is not that of their transitions, touched those in which
	// something else has been named.
	differ, touched map[int64]bool
	// again are epochs that published a row which later was withdrawn and published again, maybe
	// saying something else.
	again map[int64]bool
}

func newOutputCheck(d *head, window int64, found *findings) *outputCheck {
	return &outputCheck{
		head: d, window: window, found: found, count: map[int64]int64{},
		last:   map[int64]int64{},
		differ: map[int64]bool{}, touched: map[int64]bool{}, again: map[int64]bool{},
		output: sha256.New(),
	}
}

func (o *outputCheck) add(t *transition, row *standing, exists bool) {
	if t.epoch != o.epoch {
		o.finish()
		o.epoch = t.epoch
	}
	o.count[t.epoch]++
	o.last[t.epoch] = max(o.last[t.epoch], int64(t.ordinal))
	o.counts.Count(stream.Status(t.to))
	if (!exists || row.bad || o.known.results[t.key.id]) && stream.Status(t.to).Active() {
		o.touched[t.epoch] = true // the row is named, or was
	}
	o.scratch = appendOutput(o.scratch[:0], &t.key.id, stream.Status(t.to), stream.Reason(t.reason),
		row.said[:])
	o.output.Write(o.scratch)
}

// finish compares the epoch whose transitions have all come.
func (o *outputCheck) finish() {
	m := o.byEpoch[o.epoch]
	if m != nil && m.intact() {
		n := &o.counts
		counted := [...]int64{n.Paired, n.ProvisionalOpened, n.Retracted, n.Superseded, n.Final}
		o.differ[o.epoch] = !bytes.Equal(o.output.Sum(nil), m.output[:]) ||
			!slices.Equal(counted[:], m.counts[countPaired:countFinal+1])
	}
	o.output.Reset()
	o.counts = stream.Counts{}
}

// end names the epochs of the chain that differ.
func (o *outputCheck) end() {
	o.finish()
	for _, m := range o.all {
		want, got := m.transitions(), o.count[m.epoch]
		name := fmt.Sprintf("epoch %d", m.epoch)
		switch {
		case m.epoch < o.window || !m.intact() || o.settled(m.epoch):
		case want != got:
			o.found.note(m.epoch, "match_transition", name,
				"there are %d transitions, the manifest counts %d", got, want)
		case got > 0 && o.last[m.epoch] != got-1:
			o.found.note(m.epoch, "match_transition", name,
				"its %d transitions have ordinals up to %d", got, o.last[m.epoch])
		case o.differ[m.epoch] && !o.touched[m.epoch] && !o.again[m.epoch]:
			o.found.note(m.epoch, "match_transition", name,
				"its transitions are not those that the manifest's output_digest is of")
		}
	}
}
