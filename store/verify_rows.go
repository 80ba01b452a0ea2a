package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// liveRows reads the live rows of the buffer once, checks the hash of each and compares all of them
// with the newest manifest. The rows are given to keep.
func (d *head) liveRows(
	ctx context.Context, found *findings, keep *parts,
) (rows int64, err error) {
	newest := d.tip()
	var dec decoder
	reset := func() { rows, dec = 0, decoder{shard: d.shard, sources: dec.sources} }
	err = d.query(ctx, d.shard.loadRows(newest.after), reset, func(v [][]byte) {
		rows++
		keep.add(ctx, dec.row(v[:12], v[12]))
	})
	if err != nil {
		return rows, fmt.Errorf("read the buffer: %w", err)
	}
	keep.flush(ctx)
	for _, bad := range dec.damage {
		found.note(always, bad.Table, bad.Row, "%s", bad.What)
	}
	want := newest.counts[countBuffered]
	if rows != want || dec.live != newest.live {
		found.note(always, "buffer", fmt.Sprintf("live at epoch %d", newest.epoch),
			"%d rows are live, %d by the manifest, and their digests differ", rows, want)
	}
	return rows, nil
}

// aside checks the corrections and the quarantined records of the epochs from the window on, and
// how many each manifest counts.
func (d *head) aside(ctx context.Context, window int64, found *findings) (rows int64, err error) {
	for _, table := range []struct {
		name, statement string
		hashed, count   int
	}{
		{"correction", "verify_corrections", 17, countLate},
		{"quarantine", "verify_quarantine", 10, countQuarantined},
	} {
		s := d.shard.statement(table.statement)
		s.args.int8(window)
		var perEpoch map[int64]int64
		var here findings
		order := upTo(table.hashed)
		reset := func() { perEpoch, here = map[int64]int64{}, findings{} }
		err := d.query(ctx, s, reset, func(v [][]byte) {
			rows++
			epoch := readInt8(v[2])
			perEpoch[epoch]++
			h := hashColumns(appendColumnsOf(nil, v, order...))
			name := fmt.Sprintf("%d %d", epoch, readInt4(v[3]))
			status := string(v[table.hashed+1])
			switch {
			case d.settled(epoch):
			case !bytes.Equal(h[:], v[table.hashed]):
				here.note(epoch, table.name, name, "its row_hash is not that of its columns")
			case d.covered(epoch) && status == statusOpen:
				here.note(always, table.name, name, "it is open, its epoch was discarded")
			case d.covered(epoch):
			case d.byEpoch[epoch] == nil:
				here.note(epoch, table.name, name, "there is no epoch %d", epoch)
			case status == statusDiscarded:
				here.note(always, table.name, name, "it is discarded, its epoch is not")
			}
		})
		if err != nil {
			return rows, fmt.Errorf("read table %s: %w", table.name, err)
		}
		d.countAside(table.name, table.count, window, perEpoch, &here)
		found.merge(&here)
	}
	return rows, nil
}

// The statuses of what was set aside.
const (
	statusOpen      = "open"
	statusDiscarded = "discarded"
)

// countAside compares how many rows there are with the manifests.
func (d *head) countAside(
	table string, count int, window int64, perEpoch map[int64]int64, found *findings,
) {
	for _, m := range d.all {
		want := m.counts[count]
		if m.epoch < window || !m.intact() || d.settled(m.epoch) || perEpoch[m.epoch] == want {
			continue
		}
		found.note(m.epoch, table, fmt.Sprintf("epoch %d", m.epoch),
			"there are %d rows, the manifest counts %d", perEpoch[m.epoch], want)
	}
}

// stillHeld tells apart what is damaged from what another worker, which has taken the shard
// meanwhile, is writing.
func (h *Shard) stillHeld(ctx context.Context) error {
	if h.unsettled {
		return nil
	}
	if _, err := h.Extend(ctx); errors.Is(err, ErrFenced) {
		return err
	}
	return nil
}
