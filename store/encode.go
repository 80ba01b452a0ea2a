package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Epoch is a delta in the form in which Postgres takes it. It may be committed once.
type Epoch struct {
	delta *stream.Delta
	// head goes before the COPYs, in the round trip of the fence.
	head []statement
	// copies are the three COPYs, each empty when there is nothing to write.
	copies *copies
	// sources is the manifest's description of the partitions.
	sources string
	// upsertAll is set when a fresh identity turned out to exist.
	upsertAll bool
}

// copies are the COPY streams of an epoch, kept for the next one: they are the bulk of what an
// epoch allocates.
type copies struct {
	buffer, match, transition []byte
	order                     []sortKey
}

var copiesPool = sync.Pool{New: func() any { return new(copies) }}

// sortKey sorts rows by the first bytes of their key before it looks at the rest.
type sortKey struct {
	prefix uint64
	index  int32
}

// Encode does the work of a commit that needs no connection, so that it can be done while the epoch
// before is in its commit. The delta must not change until Commit has returned.
func (h *Shard) Encode(d *stream.Delta) *Epoch {
	e := &Epoch{delta: d, copies: copiesPool.Get().(*copies), sources: describeSources(d.Progress)}
	e.copies.buffer = h.encodeBuffer(e.copies.buffer[:0], e.copies, d)
	h.encodeResults(e)
	return e
}

// encodeResults encodes the changes by COPY where they are fresh and by upsert where not, and the
// statements of the head.
func (h *Shard) encodeResults(e *Epoch) {
	c, d := e.copies, e.delta
	c.match, c.transition = c.match[:0], c.transition[:0]
	c.order = c.order[:0]
	var upserts []change
	for i := range d.Changes {
		if d.Changes[i].Fresh && !e.upsertAll {
			id := &d.Changes[i].MatchID
			c.order = append(c.order, sortKey{binary.BigEndian.Uint64(id[:]), int32(i)})
		} else {
			upserts = append(upserts, change{&d.Changes[i], int32(i)})
		}
	}
	if len(c.order) > 0 {
		c.transition = h.encodeTransitions(c.transition, c.order, d)
		slices.SortFunc(c.order, func(a, b sortKey) int {
			if a.prefix != b.prefix {
				return cmp.Compare(a.prefix, b.prefix)
			}
			return bytes.Compare(d.Changes[a.index].MatchID[:], d.Changes[b.index].MatchID[:])
		})
		c.match = h.encodeMatches(c.match, c.order, d)
	}
	e.head = h.encodeHead(d, upserts)
}

func (h *Shard) encodeBuffer(b []byte, c *copies, d *stream.Delta) []byte {
	if len(d.Added) == 0 {
		return b
	}
	c.order = c.order[:0]
	for i := range d.Added {
		r := &d.Added[i]
		c.order = append(c.order, sortKey{textPrefix(r.ID), int32(i)})
	}
	slices.SortFunc(c.order, func(a, b sortKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		x, y := &d.Added[a.index], &d.Added[b.index]
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Side, y.Side))
	})
	b = append(b, copyHeader...)
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		for _, k := range c.order {
			if r := &d.Added[k.index]; r.Side == side {
				b = h.appendBufferRow(b, r, d.Epoch)
			}
		}
	}
	return append(b, copyTrailer...)
}

func (h *Shard) appendBufferRow(b []byte, r *stream.BufferRow, epoch int64) []byte {
	b = appendColumns(b, 15)
	b = appendInt4(b, h.generation)
	b = appendInt4(b, h.shard)
	b = appendText(b, r.Side.String())
	b = appendText(b, r.ID)
	b = appendInt8(b, r.Revision)
	b = appendText(b, r.Key)
	b = appendEventTime(b, &r.Event)
	b = appendBool(b, r.Deleted)
	b = appendText(b, attributesOf(&r.Event))
	b = appendTime(b, r.Horizon)
	b = appendText(b, r.Source)
	b = appendInt4(b, r.Number)
	b = appendText(b, r.Position)
	b = appendInt8(b, epoch)
	return appendBool(b, r.Spilled)
}

func (h *Shard) encodeMatches(b []byte, order []sortKey, d *stream.Delta) []byte {
	b = append(b, copyHeader...)
	for _, k := range order {
		r := &d.Changes[k.index]
		b = appendColumns(b, 17)
		b = appendInt4(b, h.generation)
		b = appendInt4(b, h.shard)
		b = appendBytes(b, r.MatchID[:])
		b = appendText(b, r.Kind)
		b = appendText(b, r.Status)
		b = appendTextOrNull(b, r.Left.ID)
		b = appendRevision(b, &r.Left)
		b = appendTextOrNull(b, r.Right.ID)
		b = appendRevision(b, &r.Right)
		b = appendText(b, r.Key)
		b = appendMemberTime(b, &r.Left)
		b = appendMemberTime(b, &r.Right)
		b = appendTime(b, r.Horizon)
		b = appendTextOrNull(b, r.Verdict)
		b = appendJSONBOrNull(b, r.Differences)
		b = appendInt8(b, d.Epoch)
		b = appendInt8(b, d.Epoch)
	}
	return append(b, copyTrailer...)
}

func (h *Shard) encodeTransitions(b []byte, order []sortKey, d *stream.Delta) []byte {
	b = append(b, copyHeader...)
	for _, k := range order {
		r := &d.Changes[k.index]
		b = appendColumns(b, 7)
		b = appendInt4(b, h.generation)
		b = appendInt4(b, h.shard)
		b = appendInt8(b, d.Epoch)
		b = appendInt4(b, k.index)
		b = appendBytes(b, r.MatchID[:])
		b = appendText(b, r.Status)
		b = appendText(b, r.Cause)
	}
	return append(b, copyTrailer...)
}

// recycle keeps the streams for a later epoch.
func (e *Epoch) recycle() {
	copiesPool.Put(e.copies)
	e.copies = nil
}

func appendEventTime(b []byte, e *stream.Event) []byte {
	if !e.HasTime {
		return appendNull(b)
	}
	return appendTime(b, e.Time)
}

func appendMemberTime(b []byte, m *stream.Member) []byte {
	if m.ID == "" {
		return appendNull(b)
	}
	return appendTime(b, m.Time)
}

func appendRevision(b []byte, m *stream.Member) []byte {
	if m.ID == "" {
		return appendNull(b)
	}
	return appendInt8(b, m.Revision)
}

// attributesOf gives the empty object for a tombstone that carries none.
func attributesOf(e *stream.Event) string {
	if e.Attributes == "" {
		return "{}"
	}
	return e.Attributes
}

func textPrefix(s string) uint64 {
	var p [8]byte
	copy(p[:], s)
	return binary.BigEndian.Uint64(p[:])
}

// positionNumber reads a position of the quarantine source; the empty one is the beginning.
func positionNumber(position string) (int64, error) {
	if position == "" {
		return 0, nil
	}
	return strconv.ParseInt(position, 10, 64)
}
