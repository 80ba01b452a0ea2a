package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// quarantineSource is the source that reads released records again; its positions are the numbers
// of their release.
const quarantineSource = "quarantine"

// change is a change with the number of its transition.
type change struct {
	*stream.Change
	ordinal int32
}

// encodeStatements encodes what is written by statements rather than COPY: usually few rows.
func (h *Shard) encodeStatements(d *stream.Delta, upserts []change, hashes *copies) []statement {
	var list []statement
	if len(d.Retired) > 0 {
		list = append(list, h.encodeRetired(d))
	}
	if len(upserts) > 0 {
		list = append(list, h.encodeUpserts(d, upserts, hashes))
	}
	if len(d.Corrections) > 0 {
		list = append(list, h.encodeCorrections(d))
	}
	if len(d.Quarantined) > 0 {
		list = append(list, h.encodeQuarantined(d))
	}
	for i := range d.Progress {
		if p := &d.Progress[i]; p.Source == quarantineSource && p.From != p.To {
			list = append(list, h.encodeResolved(p))
		}
	}
	if len(d.Progress) > 0 {
		list = append(list, h.encodeOffsets(d))
	}
	return list
}

// statement begins a statement on this shard with its first parameters.
func (h *Shard) statement(name string) statement {
	s := statement{name: name, sql: h.store.sql(name)}
	s.args.int4(h.generation)
	s.args.int4(h.shard)
	return s
}

func (h *Shard) encodeRetired(d *stream.Delta) statement {
	rows := slices.Clone(d.Retired)
	slices.SortFunc(rows, func(a, b *stream.BufferRow) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.ID, b.ID))
	})
	s := h.statement("epoch_retire")
	a := &s.args
	a.int8(d.Epoch)
	type row = *stream.BufferRow
	array(a, textArray, rows, func(b []byte, r *row) []byte {
		return appendText(b, (*r).Side.String())
	})
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, (*r).ID) })
	array(a, int8Array, rows, func(b []byte, r *row) []byte {
		return appendInt8(b, (*r).AddedEpoch)
	})
	return s
}

func (h *Shard) encodeUpserts(d *stream.Delta, rows []change, hashes *copies) statement {
	slices.SortFunc(rows, func(a, b change) int {
		return keyOf(&a.Result).compare(keyOf(&b.Result))
	})
	s := h.statement("epoch_upsert")
	a := &s.args
	a.int8(d.Epoch)
	array(a, int4Array, rows, func(b []byte, c *change) []byte { return appendInt4(b, c.ordinal) })
	array(a, int4Array, rows, func(b []byte, c *change) []byte {
		return appendInt4(b, bucketOf(&c.Result))
	})
	array(a, byteaArray, rows, func(b []byte, c *change) []byte {
		return appendBytes(b, c.MatchID[:])
	})
	array(a, textArray, rows, func(b []byte, c *change) []byte { return appendText(b, c.Kind) })
	array(a, textArray, rows, func(b []byte, c *change) []byte { return appendText(b, c.Status) })
	array(a, textArray, rows, func(b []byte, c *change) []byte {
		return appendTextOrNull(b, c.Left.ID)
	})
	array(a, int8Array, rows, func(b []byte, c *change) []byte { return appendRevision(b, &c.Left) })
	array(a, textArray, rows, func(b []byte, c *change) []byte {
		return appendTextOrNull(b, c.Right.ID)
	})
	array(a, int8Array, rows, func(b []byte, c *change) []byte { return appendRevision(b, &c.Right) })
	array(a, textArray, rows, func(b []byte, c *change) []byte { return appendText(b, c.Key) })
	array(a, timeArray, rows, func(b []byte, c *change) []byte {
		return appendMemberTime(b, &c.Left)
	})
	array(a, timeArray, rows, func(b []byte, c *change) []byte {
		return appendMemberTime(b, &c.Right)
	})
	array(a, timeArray, rows, func(b []byte, c *change) []byte { return appendTime(b, c.Horizon) })
	array(a, textArray, rows, func(b []byte, c *change) []byte {
		return appendTextOrNull(b, c.Verdict)
	})
	array(a, textArray, rows, func(b []byte, c *change) []byte {
		return appendTextOrNull(b, c.Differences)
	})
	array(a, textArray, rows, func(b []byte, c *change) []byte { return appendText(b, c.Cause) })
	array(a, byteaArray, rows, func(b []byte, c *change) []byte {
		return hashes.appendMatchHash(b, c.ordinal, d)
	})
	return s
}

func (h *Shard) encodeCorrections(d *stream.Delta) statement {
	s := h.statement("epoch_corrections")
	a, rows := &s.args, d.Corrections
	a.int8(d.Epoch)
	type row = stream.Correction
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Side.String()) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.ID) })
	array(a, int8Array, rows, func(b []byte, r *row) []byte { return appendInt8(b, r.Revision) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Key) })
	array(a, timeArray, rows, func(b []byte, r *row) []byte { return appendEventTime(b, &r.Event) })
	array(a, boolArray, rows, func(b []byte, r *row) []byte { return appendBool(b, r.Deleted) })
	array(a, textArray, rows, func(b []byte, r *row) []byte {
		return appendText(b, attributesOf(&r.Event))
	})
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Reason) })
	array(a, timeArray, rows, func(b []byte, r *row) []byte { return appendTime(b, r.From) })
	array(a, timeArray, rows, func(b []byte, r *row) []byte { return appendTime(b, r.To) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Source) })
	array(a, int4Array, rows, func(b []byte, r *row) []byte { return appendInt4(b, r.Number) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Position) })
	ordinal := int32(-1)
	array(a, byteaArray, rows, func(b []byte, r *row) []byte {
		ordinal++
		hash := hashColumns(h.appendCorrection(nil, d.Epoch, ordinal, r))
		return appendBytes(b, hash[:])
	})
	return s
}

func (h *Shard) encodeQuarantined(d *stream.Delta) statement {
	s := h.statement("epoch_quarantine")
	a, rows := &s.args, d.Quarantined
	a.int8(d.Epoch)
	type row = stream.Quarantined
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Side.String()) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Source) })
	array(a, int4Array, rows, func(b []byte, r *row) []byte { return appendInt4(b, r.Number) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Position) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Reason) })
	array(a, byteaArray, rows, func(b []byte, r *row) []byte { return appendBytes(b, r.Raw) })
	ordinal := int32(-1)
	array(a, byteaArray, rows, func(b []byte, r *row) []byte {
		ordinal++
		hash := hashColumns(h.appendQuarantined(nil, d.Epoch, ordinal, r))
		return appendBytes(b, hash[:])
	})
	return s
}

func (h *Shard) encodeResolved(p *stream.Progress) statement {
	s := h.statement("epoch_resolve")
	s.args.text(p.Side.String())
	s.args.int8(mustNumber(p.From))
	s.args.int8(mustNumber(p.To))
	return s
}

func (h *Shard) encodeOffsets(d *stream.Delta) statement {
	s := h.statement("epoch_offsets")
	a := &s.args
	rows := slices.SortedFunc(slices.Values(d.Progress), func(a, b stream.Progress) int {
		return a.Compare(b.Partition)
	})
	a.int8(d.Epoch)
	type row = stream.Progress
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Side.String()) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Source) })
	array(a, int4Array, rows, func(b []byte, r *row) []byte { return appendInt4(b, r.Number) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.To) })
	array(a, timeArray, rows, func(b []byte, r *row) []byte { return appendTime(b, r.Watermark) })
	array(a, boolArray, rows, func(b []byte, r *row) []byte { return appendBool(b, r.Idle) })
	array(a, timeArray, rows, func(b []byte, r *row) []byte { return appendTime(b, r.LastEventAt) })
	array(a, textArray, rows, func(b []byte, r *row) []byte { return appendText(b, r.Identity) })
	return s
}

// mustNumber reads a position of the quarantine source. Only this package makes them.
func mustNumber(position string) int64 {
	n, err := positionNumber(position)
	if err != nil {
		panic(fmt.Sprintf("store: position %q of source %s: %v", position, quarantineSource, err))
	}
	return n
}
