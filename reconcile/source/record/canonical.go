package record

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// segment is one field of an object being written: its decoded name and where in the output the
// canonical "name":value stands.
type segment struct {
	name       []byte
	start, end int
}

// appendValue reads the next value and appends its canonical form. depth counts the objects and
// arrays the value would be in, itself included.
func (m *Mapper) appendValue(dst []byte, depth int) ([]byte, error) {
	switch m.decoder.PeekKind() {
	case '{':
		if depth > depthMax {
			return dst, errNotJSON
		}
		return m.appendObject(dst, depth)
	case '[':
		if depth > depthMax {
			return dst, errNotJSON
		}
		return m.appendArray(dst, depth)
	case '"':
		quoted, err := m.readValue()
		if err != nil {
			return dst, err
		}
		return appendString(dst, quoted), nil
	}
	value, err := m.readValue()
	return append(dst, value...), err
}

func (m *Mapper) appendArray(dst []byte, depth int) ([]byte, error) {
	if _, err := m.decoder.ReadToken(); err != nil {
		return dst, err
	}
	dst = append(dst, '[')
	for first := true; ; first = false {
		if kind := m.decoder.PeekKind(); kind == ']' || kind == jsontext.KindInvalid {
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = m.appendValue(dst, depth+1); err != nil {
			return dst, err
		}
	}
	_, err := m.decoder.ReadToken()
	return append(dst, ']'), err
}

// appendObject writes the fields in the order they come and sorts them afterwards only when they
// were not sorted already: a canonical input costs no copy, and depth none either.
func (m *Mapper) appendObject(dst []byte, depth int) ([]byte, error) {
	if _, err := m.decoder.ReadToken(); err != nil {
		return dst, err
	}
	first := len(m.segments)
	dst = append(dst, '{')
	sorted := true
	for m.decoder.PeekKind() == '"' {
		quoted, err := m.readValue()
		if err != nil {
			return dst, err
		}
		field := segment{name: decodeString(quoted), start: len(dst)}
		dst = append(appendString(dst, quoted), ':')
		if dst, err = m.appendValue(dst, depth+1); err != nil {
			return dst, err
		}
		field.end = len(dst)
		dst = append(dst, ',')
		if n := len(m.segments); n > first {
			sorted = sorted && bytes.Compare(m.segments[n-1].name, field.name) < 0
		}
		m.segments = append(m.segments, field)
	}
	if _, err := m.decoder.ReadToken(); err != nil {
		return dst, err
	}
	fields := m.segments[first:]
	m.segments = m.segments[:first]
	if len(fields) == 0 {
		return append(dst, '}'), nil
	}
	if !sorted {
		m.sortFields(dst, fields)
	}
	dst[len(dst)-1] = '}'
	return dst, nil
}

// sortFields puts the fields of one object, each followed by a comma, in the order of their names.
func (m *Mapper) sortFields(dst []byte, fields []segment) {
	start := fields[0].start
	slices.SortFunc(fields, func(a, b segment) int { return bytes.Compare(a.name, b.name) })
	m.scratch = m.scratch[:0]
	for _, field := range fields {
		m.scratch = append(append(m.scratch, dst[field.start:field.end]...), ',')
	}
	copy(dst[start:], m.scratch)
}

// writeAttributes starts m.out with the canonical object of the members that are attributes.
func (m *Mapper) writeAttributes() {
	m.order = m.order[:0]
	sorted := true
	for i := range m.members {
		if m.members[i].dropped {
			continue
		}
		if n := len(m.order); n > 0 {
			last := m.order[n-1]
			sorted = sorted && bytes.Compare(m.members[last].name(), m.members[i].name()) < 0
		}
		m.order = append(m.order, i)
	}
	if !sorted {
		slices.SortFunc(m.order, func(a, b int) int {
			return bytes.Compare(m.members[a].name(), m.members[b].name())
		})
	}
	m.out = append(m.out[:0], '{')
	for n, i := range m.order {
		if n > 0 {
			m.out = append(m.out, ',')
		}
		m.out = append(append(m.out, m.members[i].quoted...), ':')
		m.out = append(m.out, m.members[i].text...)
	}
	m.out = append(m.out, '}')
}

// appendString appends a valid JSON string in its shortest escaping.
func appendString(dst, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(dst, quoted...)
	}
	return appendQuoted(dst, decodeString(quoted))
}

// appendQuoted appends valid UTF-8 as a JSON string.
func appendQuoted(dst, decoded []byte) []byte {
	dst, err := jsontext.AppendQuote(dst, decoded)
	if err != nil {
		panic("record: text that was found valid is not: " + err.Error())
	}
	return dst
}

// decodeString gives the text of a valid JSON string, copying only where it has escapes.
func decodeString(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	decoded, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		panic("record: a string that was found valid is not: " + err.Error())
	}
	return decoded
}
