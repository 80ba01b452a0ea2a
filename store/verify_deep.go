package store

import (
	"context"
	"fmt"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// everyResult checks the hash of every result, and every transition there ever was, in three passes
// that hold no more than one result in memory: the server sorts.
func (v *verification) everyResult(ctx context.Context) (rows int64, err error) {
	var dec decoder
	reset := func() { rows, dec = 0, decoder{shard: v.shard} }
	err = v.query(ctx, v.shard.statement("verify_results"), reset, func(c [][]byte) {
		rows++
		v.standing(&dec, c, &v.found)
	})
	if err != nil {
		return rows, fmt.Errorf("read the results: %w", err)
	}
	for _, id := range v.damagedResults() {
		v.known.results[id] = true
	}
	transitions, err := v.everyTransition(ctx)
	return rows + transitions, err
}

func (v *verification) everyTransition(ctx context.Context) (n int64, err error) {
	outputs := newOutputCheck(v.head, 0, &v.found)
	err = v.query(ctx, v.shard.statement("verify_outputs"), func() {}, func(c [][]byte) {
		n++
		t := readTransition(c)
		var row standing
		copy(row.said[:], c[7])
		outputs.add(&t, &row, c[7] != nil)
	})
	if err != nil {
		return n, fmt.Errorf("read the transitions of each epoch: %w", err)
	}
	past := &pastCheck{head: v.head, found: &v.found, outputs: outputs}
	err = v.query(ctx, v.shard.statement("verify_pasts"), func() {}, func(c [][]byte) {
		row := standing{
			status: statusText(c[7]), opened: readInt8(c[8]), changed: readInt8(c[9]),
		}
		if c[0] == nil {
			v.found.note(always, "match", fmt.Sprintf("%x", c[3]),
				"no transition says how it came to be %s", row.status)
			return
		}
		t := readTransition(c)
		past.add(&t, &row, c[7] != nil)
	})
	if err != nil {
		return n, fmt.Errorf("read the transitions of each result: %w", err)
	}
	past.end()
	outputs.end()
	return n, nil
}

// everyBuffer compares the buffer as of each epoch that is kept.
func (v *verification) everyBuffer(ctx context.Context) (rows int64, err error) {
	past, err := v.bufferPast(ctx, v.chain, &v.found)
	if err != nil {
		return 0, err
	}
	return past.rows, v.explain(ctx, past, &v.found)
}

// crossChecks are the statements that compare tables with each other.
var crossChecks = []struct{ name, statement string }{
	{"generation and serving", "verify_cross_serving"},
	{"attempts", "verify_cross_attempts"},
	{"no unmatched row beside a pair", "verify_cross_partners"},
	{"members of active results", "verify_cross_members"},
	{"states of what was set aside", "verify_cross_aside"},
	{"epochs that rows name", "verify_cross_epochs"},
}

// cross runs one of them.
func (v *verification) cross(ctx context.Context, name string, deep bool) error {
	s := v.shard.statement(name)
	s.args.time(v.tip().after)
	s.args.bool(deep)
	err := v.query(ctx, s, func() {}, func(c [][]byte) {
		v.found.note(always, string(c[0]), string(c[1]), "%s", c[2])
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// damagedResults gives the results whose rows are damaged.
func (d *head) damagedResults() (ids []stream.MatchID) {
	for _, f := range d.found.list {
		if f.Table == "match" {
			ids = append(ids, idOf(f.Row))
		}
	}
	return ids
}
