package record

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// idBytesMax bounds an id. It stands in primary keys, and an entry of a B-tree holds no more than
// 2,704 bytes of which other columns need a few.
const idBytesMax = 2048

// kind is what a field's value is, as far as the mapping cares.
type kind uint8

const (
	absent kind = iota // also null, and an empty CSV cell
	text               // a JSON string
	cell               // a CSV cell that isn't empty
	number
	truth // true or false
	composite
)

// value is one mapped field of the record at hand; text is decoded for a string or cell, and JSON
// text otherwise.
type value struct {
	kind kind
	text []byte
}

// finish makes the event out of the mapped values in the slots and the attributes already written
// to the start of m.out. It allocates once: all texts of the event share one string.
func (m *Mapper) finish(raw []byte) stream.Record {
	record := stream.Record{Raw: raw}
	attributes := len(m.out)
	if record.Reason = m.identify(&record.Event); record.Reason != "" {
		return record
	}
	id := len(m.out)
	if record.Reason = m.appendKey(record.Event.Deleted); record.Reason != "" {
		return record
	}
	if record.Reason = m.readTime(&record.Event); record.Reason != "" {
		return record
	}
	for _, i := range m.numeric {
		if m.slots[i].notFinite() {
			record.Reason = stream.BadNumber
			return record
		}
	}
	all := string(m.out)
	record.Event.Attributes = all[:attributes]
	record.Event.ID = all[attributes:id]
	record.Event.Key = all[id:]
	return record
}

// identify reads what every event has, tombstones included: id, revision and the deleted flag.
func (m *Mapper) identify(event *stream.Event) stream.Reason {
	id := m.slots[m.id]
	switch {
	case id.kind == absent, id.kind == text && len(id.text) == 0:
		return stream.MissingID
	case !id.scalar():
		return stream.BadType
	case len(id.text) > idBytesMax:
		return stream.TooLarge
	}
	m.out = append(m.out, id.text...)
	event.Revision = 1
	if m.revision >= 0 {
		revision, ok := m.slots[m.revision].integer()
		if !ok {
			return stream.BadRevision
		}
		event.Revision = revision
	}
	if m.deleted >= 0 {
		deleted, ok := m.slots[m.deleted].boolean()
		if !ok {
			return stream.BadType
		}
		event.Deleted = deleted
	}
	return ""
}

// appendKey writes the encoded key to m.out: the text of its only part, or each part behind its
// length in code points, so that no two lists of parts encode alike.
func (m *Mapper) appendKey(deleted bool) stream.Reason {
	missing := false
	for _, i := range m.key {
		part := &m.slots[i]
		switch {
		case part.kind == absent, part.kind == text && len(part.text) == 0:
			missing = true
		case !part.scalar():
			return stream.BadType
		}
	}
	if missing {
		// A key with a hole finds nothing, so a tombstone that carries one carries no key.
		if deleted {
			return ""
		}
		return stream.MissingKey
	}
	if len(m.key) == 1 {
		m.out = append(m.out, m.slots[m.key[0]].text...)
		return ""
	}
	for n, i := range m.key {
		if n > 0 {
			m.out = append(m.out, '|')
		}
		part := m.slots[i].text
		m.out = strconv.AppendInt(m.out, int64(utf8.RuneCount(part)), 10)
		m.out = append(m.out, ':')
		m.out = append(m.out, part...)
	}
	return ""
}

func (m *Mapper) readTime(event *stream.Event) stream.Reason {
	at := &m.slots[m.time]
	if at.kind == absent {
		if event.Deleted {
			return ""
		}
		return stream.BadTime
	}
	micros, ok := m.format(at)
	if !ok {
		return stream.BadTime
	}
	event.Time, event.HasTime = micros, true
	return ""
}

// scalar tells whether the value may stand for text: a string, a cell or a number.
func (v *value) scalar() bool { return v.kind == text || v.kind == cell || v.kind == number }

// integer reads an exact 64-bit integer; 1.0 and 1e3 are none.
func (v *value) integer() (int64, bool) {
	if !v.scalar() {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v.text), 10, 64)
	return n, err == nil
}

// boolean reads the deleted flag; absent is false. A CSV cell has the spellings of COPY as well.
func (v *value) boolean() (flag, ok bool) {
	switch v.kind {
	case absent:
		return false, true
	case truth:
		return v.text[0] == 't', true
	case cell:
		switch strings.ToLower(string(v.text)) {
		case "true", "t", "1":
			return true, true
		case "false", "f", "0":
			return false, true
		}
	}
	return false, false
}

// notFinite tells whether a compared number is NaN or an infinity, which JSON can only spell as
// text and which Postgres' numeric and float columns do.
func (v *value) notFinite() bool {
	if v.kind != text && v.kind != cell {
		return false
	}
	s := bytes.TrimLeft(bytes.TrimSpace(v.text), "+-")
	return bytes.EqualFold(s, []byte("nan")) || bytes.EqualFold(s, []byte("inf")) ||
		bytes.EqualFold(s, []byte("infinity"))
}
