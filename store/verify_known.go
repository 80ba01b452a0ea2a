package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// known is the damage that was put on record when a shard went back behind it. What is damaged of a
// discarded epoch stays so, since nothing depends on it; it is told once.
type known struct {
	rows    map[[2]string]bool
	results map[stream.MatchID]bool
}

func (d *head) readKnown(ctx context.Context) error {
	d.known = known{map[[2]string]bool{}, map[stream.MatchID]bool{}}
	err := d.query(ctx, d.shard.statement("verify_known"), func() {}, func(v [][]byte) {
		table, row := string(v[0]), string(v[1])
		d.known.rows[[2]string{table, row}] = true
		if table == "match" {
			d.known.results[idOf(row)] = true
		}
	})
	if err != nil {
		return fmt.Errorf("read the damage on record: %w", err)
	}
	return nil
}

// forgetKnown drops what is known of discarded epochs.
func (d *head) forgetKnown() {
	d.found.list = slices.DeleteFunc(d.found.list, func(f finding) bool {
		var epoch int64
		_, err := fmt.Sscan(strings.TrimPrefix(f.Row, "epoch "), &epoch)
		return err == nil && d.covered(epoch) && d.known.rows[[2]string{f.Table, f.Row}]
	})
}

// checkDiscarded compares the discarded manifests with their digests: what they read may have to be
// read again.
func (h *history) checkDiscarded(found *findings) {
	for _, m := range h.all {
		if h.covered(m.epoch) && !m.intact() {
			found.note(always, "epoch", fmt.Sprint(m.epoch), "its digest is not that of its columns")
		}
	}
}
