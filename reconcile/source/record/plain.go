package record

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// plainMembersMax is how many top-level fields the plain path takes: it looks for a name that
// stands twice by comparing each with all before it.
const plainMembersMax = 64

// readPlain fills members as readObject does, for records written as most are: strings without
// escapes, numbers without exponents, nested values in canonical form already. False says nothing
// about the record, only that read has to look.
func (m *Mapper) readPlain(raw []byte) bool {
	m.raw, m.members = raw, m.members[:0]
	at := skipSpaces(raw, 0)
	if byteAt(raw, at) != '{' || !plainText(raw) {
		return false
	}
	for first := true; first || byteAt(raw, at) == ','; first = false {
		start := skipSpaces(raw, at+1)
		nameEnd := plainString(raw, start)
		colon := skipSpaces(raw, nameEnd)
		if nameEnd == 0 || byteAt(raw, colon) != ':' {
			return false
		}
		quoted := raw[start:nameEnd]
		start = skipSpaces(raw, colon+1)
		end := plainValue(raw, start, 2)
		if end == 0 || len(m.members) == plainMembersMax || m.holds(quoted) {
			return false
		}
		m.members = append(m.members, member{})
		field := &m.members[len(m.members)-1]
		field.quoted, field.text = quoted, raw[start:end]
		at = skipSpaces(raw, end)
	}
	return byteAt(raw, at) == '}' && skipSpaces(raw, at+1) == len(raw)
}

// plainText tells whether raw is UTF-8 without backslashes and control characters, so that every
// quote begins or ends a string. It looks at eight bytes at once.
func plainText(raw []byte) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	control, any8 := uint64(0), uint64(0)
	rest := raw
	for ; len(rest) >= 8; rest = rest[8:] {
		b := binary.LittleEndian.Uint64(rest)
		control |= (b - ' '*ones) &^ b
		any8 |= b
	}
	for _, c := range rest {
		if c < ' ' {
			return false
		}
		any8 |= uint64(c)
	}
	return control&high == 0 && bytes.IndexByte(raw, '\\') < 0 &&
		(any8&high == 0 || utf8.Valid(raw))
}

func (m *Mapper) holds(quoted []byte) bool {
	for i := range m.members {
		if bytes.Equal(m.members[i].quoted, quoted) {
			return true
		}
	}
	return false
}

// plainField gives the value of one field of a canonical object, or nil. False says only that the
// object isn't plain.
func plainField(object []byte, name string) (value []byte, plain bool) {
	if bytes.IndexByte(object, '\\') >= 0 {
		return nil, false
	}
	at := 0
	for at == 0 || byteAt(object, at) == ',' {
		nameEnd := plainString(object, at+1)
		end := plainValue(object, nameEnd+1, 2)
		if nameEnd == 0 || end == 0 {
			return nil, false
		}
		if string(object[at+2:nameEnd-1]) == name {
			value = object[nameEnd+1 : end]
		}
		at = end
	}
	return value, byteAt(object, at) == '}'
}

// The functions below give the index past the plain value that begins at at, or 0 where there is
// none. depth counts as in appendValue.

func plainValue(b []byte, at, depth int) int {
	switch byteAt(b, at) {
	case '"':
		return plainString(b, at)
	case '{', '[':
		return plainComposite(b, at, depth)
	case 't':
		return plainLiteral(b, at, "true")
	case 'f':
		return plainLiteral(b, at, "false")
	case 'n':
		return plainLiteral(b, at, "null")
	}
	return plainNumber(b, at)
}

// plainComposite wants names in order, which also shows that none stands twice.
func plainComposite(b []byte, at, depth int) int {
	begin, end := b[at], b[at]+2 // '}' comes two after '{', as ']' after '['
	if depth > depthMax {
		return 0
	}
	if byteAt(b, at+1) == end {
		return at + 2
	}
	var previous []byte
	for first := true; first || byteAt(b, at) == ','; first = false {
		if begin == '{' {
			nameEnd := plainString(b, at+1)
			if nameEnd == 0 || byteAt(b, nameEnd) != ':' {
				return 0
			}
			name := b[at+2 : nameEnd-1]
			if !first && bytes.Compare(previous, name) >= 0 {
				return 0
			}
			previous, at = name, nameEnd
		}
		if at = plainValue(b, at+1, depth+1); at == 0 {
			return 0
		}
	}
	if byteAt(b, at) != end {
		return 0
	}
	return at + 1
}

func plainString(b []byte, at int) int {
	if byteAt(b, at) != '"' {
		return 0
	}
	i := bytes.IndexByte(b[at+1:], '"')
	if i < 0 {
		return 0
	}
	return at + i + 2
}

func plainNumber(b []byte, at int) int {
	if byteAt(b, at) == '-' {
		at++
	}
	end := skipDigits(b, at)
	if end == at || b[at] == '0' && end > at+1 {
		return 0
	}
	if byteAt(b, end) == '.' {
		fraction := end + 1
		if end = skipDigits(b, fraction); end == fraction {
			return 0
		}
	}
	return end // an exponent is nothing that a caller lets follow
}

func plainLiteral(b []byte, at int, literal string) int {
	if !bytes.HasPrefix(b[at:], []byte(literal)) {
		return 0
	}
	return at + len(literal)
}

func skipDigits(b []byte, at int) int {
	for at < len(b) && isDigit(b[at]) {
		at++
	}
	return at
}

func skipSpaces(b []byte, at int) int {
	for at < len(b) && b[at] == ' ' {
		at++
	}
	return at
}

// byteAt gives 0 past the end, which no plain value holds.
func byteAt(b []byte, at int) byte {
	if at < len(b) {
		return b[at]
	}
	return 0
}
