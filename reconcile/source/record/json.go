package record

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// JSON reads a record that is one JSON object. The result's Raw is raw itself, so the caller must
// not write to it again; nothing else of the result refers to it.
func (m *Mapper) JSON(raw []byte) stream.Record {
	raw = slices.Clip(raw)
	if len(raw) > m.mapping.MaxEventBytes {
		return m.TooLarge(raw)
	}
	if !m.readPlain(raw) {
		if reason := m.read(raw); reason != "" {
			return stream.Record{Reason: reason, Raw: raw}
		}
	}
	m.fillSlots()
	m.writeAttributes()
	return m.finish(raw)
}

// read fills members from a record of any form, or says what is wrong with it.
func (m *Mapper) read(raw []byte) stream.Reason {
	if reason := textFault(raw); reason != "" {
		return reason
	}
	if escapesNul(raw) {
		return stream.NulCharacter
	}
	if err := m.readObject(raw); err != nil {
		return faultOf(raw, err)
	}
	return ""
}

// Row reads a database row: column names and the JSON text of each value.
func (m *Mapper) Row(names []string, values [][]byte) stream.Record {
	raw := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(appendQuoted(raw, []byte(name)), ':')
		raw = append(raw, values[i]...)
	}
	return m.JSON(append(raw, '}'))
}

var (
	errNotObject = errors.New("not an object")
	errNotJSON   = errors.New("not one JSON value")
)

// textFault finds what no record may contain, whatever its format.
func textFault(raw []byte) stream.Reason {
	switch {
	case !utf8.Valid(raw):
		return stream.BadUTF8
	case bytes.IndexByte(raw, 0) >= 0:
		return stream.NulCharacter
	}
	return ""
}

// escapesNul finds the six characters \u0000 where the backslash isn't itself escaped.
func escapesNul(raw []byte) bool {
	escape := []byte(`\u0000`)
	for from := 0; ; {
		i := bytes.Index(raw[from:], escape)
		if i < 0 {
			return false
		}
		at := from + i
		before := at
		for before > 0 && raw[before-1] == '\\' {
			before--
		}
		if (at-before)%2 == 0 {
			return true
		}
		from = at + len(escape)
	}
}

// faultOf turns a parser's error into the reason. A lone surrogate escape is a fault of the text,
// not of the grammar: it's one when the grammar alone accepts the record.
func faultOf(raw []byte, err error) stream.Reason {
	switch {
	case errors.Is(err, errNotObject):
		return stream.NotObject
	case errors.Is(err, errNotJSON):
		return stream.NotJSON
	case errors.Is(err, jsontext.ErrDuplicateName):
		return stream.DuplicateField
	}
	grammarOnly := []jsontext.Options{
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true),
	}
	if jsontext.Value(raw).IsValid(grammarOnly...) {
		return stream.BadUTF8
	}
	return stream.NotJSON
}

// readObject fills members with the top-level fields of raw, each value in canonical form.
func (m *Mapper) readObject(raw []byte) error {
	m.raw, m.members, m.segments, m.arena = raw, m.members[:0], m.segments[:0], m.arena[:0]
	m.reset(raw)
	if m.decoder.PeekKind() != '{' {
		if _, err := m.decoder.ReadValue(); errors.Is(err, io.EOF) {
			return errNotJSON
		} else if err != nil {
			return err
		}
		return m.expectEnd(errNotObject)
	}
	if _, err := m.decoder.ReadToken(); err != nil {
		return err
	}
	for m.decoder.PeekKind() == '"' {
		if err := m.readField(); err != nil {
			return err
		}
	}
	if _, err := m.decoder.ReadToken(); err != nil {
		return err
	}
	return m.expectEnd(nil)
}

// readField reads one top-level field; a value that is canonical as it stands isn't copied.
func (m *Mapper) readField() error {
	quoted, err := m.readValue()
	if err != nil {
		return err
	}
	field := member{quoted: quoted}
	if bytes.IndexByte(quoted, '\\') >= 0 {
		field.decoded = decodeString(quoted)
		field.quoted = appendQuoted(nil, field.decoded)
	}
	switch m.decoder.PeekKind() {
	case '{', '[':
		start := len(m.arena)
		if m.arena, err = m.appendValue(m.arena, 2); err != nil {
			return err
		}
		field.text = m.arena[start:]
	default:
		if field.text, err = m.readValue(); err != nil {
			return err
		}
		if field.text[0] == '"' && bytes.IndexByte(field.text, '\\') >= 0 {
			field.text = appendString(nil, field.text)
		}
	}
	m.members = append(m.members, field)
	return nil
}

// expectEnd gives then when nothing but white space follows the value that was read.
func (m *Mapper) expectEnd(then error) error {
	if len(bytes.TrimLeft(m.raw[m.decoder.InputOffset():], " \t\r\n")) > 0 {
		return errNotJSON
	}
	return then
}

// fillSlots finds the mapped values and marks the members that are no attributes.
func (m *Mapper) fillSlots() {
	for i := range m.paths {
		p := &m.paths[i]
		var canonical []byte
		if at := m.find(p.text, p.lastAt); at >= 0 {
			canonical = m.members[at].text
			m.members[at].dropped = p.dropped
			p.lastAt = at
		} else if len(p.steps) > 1 {
			if at := m.find(p.steps[0], p.lastAt); at >= 0 {
				canonical = m.walk(m.members[at].text, p.steps[1:])
				p.lastAt = at
			}
		}
		m.slots[i] = classify(canonical)
	}
}

// find gives the index of a top-level field or -1. It looks first where the field was in the last
// record, since the records of a stream are mostly written alike.
func (m *Mapper) find(name string, lastAt int) int {
	if lastAt < len(m.members) && string(m.members[lastAt].name()) == name {
		return lastAt
	}
	for i := range m.members {
		if string(m.members[i].name()) == name {
			return i
		}
	}
	return -1
}

// walk descends from a canonical value by names; nil where the way ends.
func (m *Mapper) walk(value []byte, steps []string) []byte {
	for _, step := range steps {
		if value[0] != '{' {
			return nil
		}
		if value = m.lookUp(value, step); value == nil {
			return nil
		}
	}
	return value
}

// lookUp gives the value of one field of a canonical object, or nil.
func (m *Mapper) lookUp(object []byte, name string) []byte {
	if value, plain := plainField(object, name); plain {
		return value
	}
	return m.decodeField(object, name)
}

// decodeField is lookUp for objects of any form. The object has been parsed before, so that an
// error can only mean its end.
func (m *Mapper) decodeField(object []byte, name string) []byte {
	m.raw = object
	m.reset(object)
	if _, err := m.decoder.ReadToken(); err != nil {
		return nil
	}
	for m.decoder.PeekKind() == '"' {
		quoted, err := m.readValue()
		if err != nil {
			return nil
		}
		found := string(decodeString(quoted)) == name
		value, err := m.readValue()
		if err != nil {
			return nil
		}
		if found {
			return value
		}
	}
	return nil
}

// classify decodes canonical JSON text into a value.
func classify(canonical []byte) value {
	if len(canonical) == 0 {
		return value{}
	}
	switch canonical[0] {
	case 'n':
		return value{}
	case '"':
		return value{kind: text, text: decodeString(canonical)}
	case 't', 'f':
		return value{kind: truth, text: canonical}
	case '{', '[':
		return value{kind: composite}
	}
	return value{kind: number, text: canonical}
}

func (m *Mapper) reset(raw []byte) {
	m.reader = *bytes.NewBuffer(raw)
	m.decoder.Reset(&m.reader)
}

// readValue reads one value and gives its text as a part of m.raw, which stays valid where the
// decoder's own slice does not.
func (m *Mapper) readValue() ([]byte, error) {
	value, err := m.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	end := m.decoder.InputOffset()
	return m.raw[end-int64(len(value)) : end : end], nil
}
