package store

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// A row's hash is the beginning of SHA-256 over its columns in the order of the table, each in the
// form in which Postgres sends it in binary: its length in four bytes, -1 for null, then the value.
// That form is the same on the way in and on the way out, whatever the settings of a session, so
// what was written and what is read can be compared without making either canonical first: times
// are microseconds, numbers their two's complement, JSON its exact text.
//
// 128 bits are enough that chance never takes a damaged row for a right one. They are no defence
// against somebody who writes rows and their hashes alike.
type rowHash [16]byte

func hashColumns(columns []byte) (h rowHash) {
	sum := sha256.Sum256(columns)
	copy(h[:], sum[:])
	return h
}

// setDigest is the digest of a set of rows: the sum of their hashes as two numbers of 64 bits each,
// without carry. What enters and leaves the set changes it in any order, at the cost of the change.
type setDigest [2]uint64

func (s *setDigest) add(h rowHash) {
	s[0] += binary.BigEndian.Uint64(h[:8])
	s[1] += binary.BigEndian.Uint64(h[8:])
}

func (s *setDigest) remove(h rowHash) {
	s[0] -= binary.BigEndian.Uint64(h[:8])
	s[1] -= binary.BigEndian.Uint64(h[8:])
}

// merge adds all rows of another set.
func (s *setDigest) merge(o setDigest) {
	s[0] += o[0]
	s[1] += o[1]
}

// subtract takes all rows of another set away.
func (s *setDigest) subtract(o setDigest) {
	s[0] -= o[0]
	s[1] -= o[1]
}

func (s *setDigest) bytes() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), s[0])
	return binary.BigEndian.AppendUint64(b, s[1])
}

// readSetDigest gives the digest of no row for what can't be one.
func readSetDigest(v []byte) setDigest {
	if len(v) != 16 {
		return setDigest{}
	}
	return setDigest{binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:16])}
}

// appendBufferColumns appends the columns of a buffer row that its hash covers.
func (h *Shard) appendBufferColumns(b []byte, r *stream.BufferRow) []byte {
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
	return appendInt8(b, r.AddedEpoch)
}

// appendSaid appends what a result row says: the columns that the first half of its hash covers.
func (h *Shard) appendSaid(b []byte, r *stream.Result) []byte {
	b = appendInt4(b, h.generation)
	b = appendInt4(b, h.shard)
	b = appendInt4(b, bucketOf(r))
	b = appendBytes(b, r.MatchID[:])
	b = appendText(b, r.Kind)
	b = appendTextOrNull(b, r.Left.ID)
	b = appendRevision(b, &r.Left)
	b = appendTextOrNull(b, r.Right.ID)
	b = appendRevision(b, &r.Right)
	b = appendText(b, r.Key)
	b = appendMemberTime(b, &r.Left)
	b = appendMemberTime(b, &r.Right)
	b = appendTime(b, r.Horizon)
	b = appendTextOrNull(b, r.Verdict)
	return appendTextOrNull(b, r.Differences)
}

// appendStanding appends where a result stands: what the second half of its hash covers.
func appendStanding(b []byte, id *stream.MatchID, status stream.Status, changed int64) []byte {
	b = appendBytes(b, id[:])
	b = appendText(b, status)
	return appendInt8(b, changed)
}

// appendOutput appends what one transition adds to an epoch's output digest: the result, its new
// status and why, and where it is published what it says.
func appendOutput(
	b []byte, id *stream.MatchID, to stream.Status, reason stream.Reason, said []byte,
) []byte {
	b = appendBytes(b, id[:])
	b = appendText(b, to)
	b = appendText(b, reason)
	if !to.Active() {
		return appendNull(b)
	}
	return appendBytes(b, said)
}

// appendCorrection appends the columns of a correction that its hash covers.
func (h *Shard) appendCorrection(
	b []byte, epoch int64, ordinal int32, r *stream.Correction,
) []byte {
	b = appendInt4(b, h.generation)
	b = appendInt4(b, h.shard)
	b = appendInt8(b, epoch)
	b = appendInt4(b, ordinal)
	b = appendText(b, r.Side.String())
	b = appendText(b, r.ID)
	b = appendInt8(b, r.Revision)
	b = appendText(b, r.Key)
	b = appendEventTime(b, &r.Event)
	b = appendBool(b, r.Deleted)
	b = appendText(b, attributesOf(&r.Event))
	b = appendText(b, r.Reason)
	b = appendTime(b, r.From)
	b = appendTime(b, r.To)
	b = appendText(b, r.Source)
	b = appendInt4(b, r.Number)
	return appendText(b, r.Position)
}

// appendQuarantined appends the columns of a quarantined record that its hash covers.
func (h *Shard) appendQuarantined(
	b []byte, epoch int64, ordinal int32, r *stream.Quarantined,
) []byte {
	b = appendInt4(b, h.generation)
	b = appendInt4(b, h.shard)
	b = appendInt8(b, epoch)
	b = appendInt4(b, ordinal)
	b = appendText(b, r.Side.String())
	b = appendText(b, r.Source)
	b = appendInt4(b, r.Number)
	b = appendText(b, r.Position)
	b = appendText(b, r.Reason)
	return appendBytes(b, r.Raw)
}
