package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Epoch is a delta in the form in which Postgres takes it. It may be committed once.
type Epoch struct {
	delta *stream.Delta
	// copies are the three COPYs, each empty when there is nothing to write.
	copies *copies
	// statements come after the COPYs, in the round trip of the commit.
	statements []statement
	// manifest is what there is to say beside the delta.
	manifest manifest
	// digest is that of the manifest, once it is written.
	digest [digestSize]byte
	// upsertAll is set when a fresh identity turned out to exist.
	upsertAll bool
}

// copies are the COPY streams of an epoch, kept for the next one: they are the bulk of what an
// epoch allocates.
type copies struct {
	buffer, match, transition []byte
	order                     []sortKey
	// said holds, for each change, the hash of what its row says; scratch what is hashed.
	said    []rowHash
	scratch []byte
}

var copiesPool = sync.Pool{New: func() any { return new(copies) }}

// sortKey sorts rows by the first bytes of their key before it looks at the rest.
type sortKey struct {
	prefix uint64
	index  int32
}

// Encode does the work of a commit that needs no connection, so that it can be done while the epoch
// before is in its commit. Epochs are encoded in their order. The delta must not change until
// Commit has returned.
func (h *Shard) Encode(d *stream.Delta) *Epoch {
	e := &Epoch{delta: d, copies: copiesPool.Get().(*copies)}
	e.manifest = manifest{kind: kindEpoch, sources: describeSources(d.Progress)}
	c := e.copies
	c.buffer = h.encodeBuffer(c.buffer[:0], c, d)
	for _, left := range [][]*stream.BufferRow{d.Retired, d.Expired} {
		for _, r := range left {
			c.scratch = h.appendBufferColumns(c.scratch[:0], r)
			h.live.remove(hashColumns(c.scratch))
		}
	}
	e.manifest.live = h.live
	h.hashChanges(e)
	h.encodeResults(e)
	return e
}

// hashChanges hashes what the changed rows say, and all of them together as the epoch's output.
func (h *Shard) hashChanges(e *Epoch) {
	c, d := e.copies, e.delta
	c.order, c.said = c.order[:0], c.said[:0]
	for i := range d.Changes {
		r := &d.Changes[i].Result
		c.scratch = h.appendSaid(c.scratch[:0], r)
		c.said = append(c.said, hashColumns(c.scratch))
		c.order = append(c.order, sortKey{binary.BigEndian.Uint64(r.MatchID[:]), int32(i)})
	}
	sortChanges(c.order, d)
	output := sha256.New()
	for _, k := range c.order {
		r := &d.Changes[k.index]
		c.scratch = appendOutput(c.scratch[:0], &r.MatchID, r.Status, r.Cause, c.said[k.index][:])
		output.Write(c.scratch)
	}
	output.Sum(e.manifest.output[:0])
}

// sortChanges sorts changes by their prefixes, and where those are equal by their identities.
func sortChanges(order []sortKey, d *stream.Delta) {
	slices.SortFunc(order, func(a, b sortKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(d.Changes[a.index].MatchID[:], d.Changes[b.index].MatchID[:])
	})
}

// encodeResults encodes the changes by COPY where they are fresh and by upsert where not, and the
// other statements.
func (h *Shard) encodeResults(e *Epoch) {
	c, d := e.copies, e.delta
	c.match, c.transition = c.match[:0], c.transition[:0]
	c.order = c.order[:0]
	var upserts []change
	for i := range d.Changes {
		if d.Changes[i].Fresh && !e.upsertAll {
			c.order = append(c.order, sortKey{keyPrefix(&d.Changes[i].Result), int32(i)})
		} else {
			upserts = append(upserts, change{&d.Changes[i], int32(i)})
		}
	}
	if len(c.order) > 0 {
		c.transition = h.encodeTransitions(c.transition, c.order, d)
		sortChanges(c.order, d)
		c.match = h.encodeMatches(c.match, c, d)
	}
	e.statements = h.encodeStatements(d, upserts, c)
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
				b = h.appendBufferRow(b, r)
			}
		}
	}
	return append(b, copyTrailer...)
}

// appendBufferRow also takes the row into the digest of the buffer.
func (h *Shard) appendBufferRow(b []byte, r *stream.BufferRow) []byte {
	b = appendColumns(b, 16)
	columns := len(b)
	b = h.appendBufferColumns(b, r)
	hash := hashColumns(b[columns:])
	h.live.add(hash)
	b = appendBool(b, r.Spilled)
	return appendBytes(b, hash[:])
}

func (h *Shard) encodeMatches(b []byte, c *copies, d *stream.Delta) []byte {
	b = append(b, copyHeader...)
	for _, k := range c.order {
		r := &d.Changes[k.index]
		b = appendColumns(b, 19)
		b = h.appendSaid(b, &r.Result)
		b = appendText(b, r.Status)
		b = appendInt8(b, d.Epoch)
		b = appendInt8(b, d.Epoch)
		b = c.appendMatchHash(b, k.index, d)
	}
	return append(b, copyTrailer...)
}

// appendMatchHash appends the hash of a changed row: what it says, where it stands.
func (c *copies) appendMatchHash(b []byte, index int32, d *stream.Delta) []byte {
	r := &d.Changes[index]
	c.scratch = appendStanding(c.scratch[:0], &r.MatchID, r.Status, d.Epoch)
	standing := hashColumns(c.scratch)
	b = append(b, 0, 0, 0, byte(len(standing)+len(c.said[index])))
	b = append(b, c.said[index][:]...)
	return append(b, standing[:]...)
}

func (h *Shard) encodeTransitions(b []byte, order []sortKey, d *stream.Delta) []byte {
	b = append(b, copyHeader...)
	for _, k := range order {
		r := &d.Changes[k.index]
		b = appendColumns(b, 8)
		b = appendInt4(b, h.generation)
		b = appendInt4(b, h.shard)
		b = appendInt8(b, d.Epoch)
		b = appendInt4(b, k.index)
		b = appendInt4(b, bucketOf(&r.Result))
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
