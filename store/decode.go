package store

import (
	"bytes"
	"fmt"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// decoder turns rows into values, and checks the hash of each. It keeps what many rows have in
// common.
type decoder struct {
	shard   *Shard
	buf     []byte
	texts   texts
	sources map[string]string
	damage  []Damage
	// live is the digest of the buffer rows decoded.
	live setDigest
}

// damaged gives the rows whose hash was not right, as a *DamageError.
func (d *decoder) damaged() error { return damageError(d.damage) }

// fetched takes one row of the statement fetch.
func (d *decoder) fetched(v [][]byte, needs *stream.Needs, found *stream.Found) {
	switch part, rest := string(v[0]), v[1:]; part {
	case "row":
		found.Rows = append(found.Rows, d.row(rest[:12], rest[25]))
	case "expired":
		found.Expired = append(found.Expired, d.row(rest[:12], rest[25]))
	case "result":
		found.Results = append(found.Results, d.result(rest[:2], rest[12:]))
	case "due":
		last, count, number := readTime(v[2]), readInt8(v[5]), readInt4(v[10])
		if count >= int64(needs.DueMax) {
			to := &found.DueTo[number-1]
			*to = min(*to, last+1)
		}
	}
}

// row takes the columns key, horizon, side, id, revision, event_time, deleted, attributes, source,
// partition, position, added_epoch; and the hash.
func (d *decoder) row(v [][]byte, hash []byte) stream.BufferRow {
	h := d.hashRow(v)
	d.live.add(h)
	if !bytes.Equal(h[:], hash) {
		d.note("buffer", bufferName(v[2], v[3], readInt8(v[11])))
	}
	return stream.BufferRow{
		Event: stream.Event{
			ID: d.texts.keep(v[3]), Revision: readInt8(v[4]), Key: d.texts.keep(v[0]),
			Time: readTime(v[5]), HasTime: v[5] != nil, Deleted: readBool(v[6]),
			Attributes: d.texts.keep(v[7]),
		},
		Horizon:    readTime(v[1]),
		AddedEpoch: readInt8(v[11]),
		Position:   d.texts.keep(v[10]),
		Source:     d.source(v[8]),
		Number:     readInt4(v[9]),
		Side:       readSide(v[2]),
	}
}

// hashRow gives the hash that a row of the buffer should have.
func (d *decoder) hashRow(v [][]byte) rowHash {
	d.buf = d.appendOwn(d.buf[:0])
	d.buf = appendColumnsOf(d.buf, v, 2, 3, 4, 0, 5, 6, 7, 1, 8, 9, 10, 11)
	return hashColumns(d.buf)
}

// bufferName names a row of the buffer.
func bufferName(side, id []byte, added int64) string {
	return fmt.Sprintf("%s %s, added in epoch %d", side, id, added)
}

// result takes the columns key, horizon; bucket, match_id, kind, status, left_id, left_revision,
// right_id, right_revision, left_time, right_time, verdict, differences, changed_epoch, row_hash.
func (d *decoder) result(head, v [][]byte) stream.Result {
	if !d.checkResult(head, v) {
		d.note("match", fmt.Sprintf("%x", v[1]))
	}
	return d.decodeResult(head, v)
}

// decodeResult takes the columns of result, and trusts them.
func (d *decoder) decodeResult(head, v [][]byte) stream.Result {
	keep := d.texts.keep
	return stream.Result{
		MatchID:     stream.MatchID(v[1]),
		Key:         keep(head[0]),
		Horizon:     readTime(head[1]),
		Kind:        kindOf(v[2]),
		Status:      statusOf(v[3]),
		Verdict:     verdictOf(v[10]),
		Left:        stream.Member{ID: keep(v[4]), Revision: readInt8(v[5]), Time: readTime(v[8])},
		Right:       stream.Member{ID: keep(v[6]), Revision: readInt8(v[7]), Time: readTime(v[9])},
		Differences: keep(v[11]),
	}
}

// checkResult compares both halves of a result's hash, and tells whether they are right.
func (d *decoder) checkResult(head, v [][]byte) bool {
	said, standing := d.hashResult(head, v)
	hash := v[13]
	return bytes.Equal(said[:], hash[:16]) && bytes.Equal(standing[:], hash[16:])
}

// hashResult gives both halves of the hash that a result should have.
func (d *decoder) hashResult(head, v [][]byte) (said, standing rowHash) {
	d.buf = d.appendOwn(d.buf[:0])
	d.buf = appendColumnsOf(d.buf, v, 0, 1, 2, 4, 5, 6, 7)
	d.buf = appendColumnsOf(d.buf, head, 0)
	d.buf = appendColumnsOf(d.buf, v, 8, 9)
	d.buf = appendColumnsOf(d.buf, head, 1)
	d.buf = appendColumnsOf(d.buf, v, 10, 11)
	said = hashColumns(d.buf)
	d.buf = appendColumnsOf(d.buf[:0], v, 1, 3, 12)
	return said, hashColumns(d.buf)
}

// appendOwn appends the columns that all rows of the shard have in common.
func (d *decoder) appendOwn(b []byte) []byte {
	return appendInt4(appendInt4(b, d.shard.generation), d.shard.shard)
}

func (d *decoder) note(table, row string) {
	d.damage = append(d.damage, Damage{
		Table: table, Row: row, What: "its row_hash is not that of its columns",
	})
}

// source gives one string for all rows of a source.
func (d *decoder) source(v []byte) string {
	if name, ok := d.sources[string(v)]; ok {
		return name
	}
	if d.sources == nil {
		d.sources = map[string]string{}
	}
	name := string(v)
	d.sources[name] = name
	return name
}

// appendColumnsOf appends values of a row, in the order given, as a hash takes them.
func appendColumnsOf(b []byte, v [][]byte, order ...int) []byte {
	for _, i := range order {
		if v[i] == nil {
			b = appendNull(b)
		} else {
			b = appendBytes(b, v[i])
		}
	}
	return b
}

func kindOf(v []byte) stream.Kind {
	switch string(v) {
	case string(stream.Pair):
		return stream.Pair
	case string(stream.LeftOnly):
		return stream.LeftOnly
	}
	return stream.RightOnly
}

func statusOf(v []byte) stream.Status {
	switch string(v) {
	case string(stream.Matched):
		return stream.Matched
	case string(stream.Provisional):
		return stream.Provisional
	}
	return stream.Final
}

func verdictOf(v []byte) string {
	switch string(v) {
	case "agree":
		return "agree"
	case "differ":
		return "differ"
	}
	return ""
}
