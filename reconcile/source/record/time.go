package record

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// timeFormat reads an event time; false where the value is none.
type timeFormat func(*value) (stream.Micros, bool)

var timeFormats = map[string]timeFormat{
	"":        rfc3339,
	"rfc3339": rfc3339,
	"unix_s":  func(v *value) (stream.Micros, bool) { return unix(v, 6) },
	"unix_ms": func(v *value) (stream.Micros, bool) { return unix(v, 3) },
	"unix_us": func(v *value) (stream.Micros, bool) { return unix(v, 0) },
}

// The event times that exist: years 1 to 9999 in UTC, the last bound excluded.
var (
	timeMin = stream.MicrosOf(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	timeMax = stream.MicrosOf(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
)

// rfc3339 reads RFC 3339 text with its zone, cut to microseconds toward the past.
func rfc3339(v *value) (stream.Micros, bool) {
	if v.kind != text && v.kind != cell || !rfc3339Shape(v.text) {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339, string(v.text))
	if err != nil {
		return 0, false
	}
	return inRange(stream.MicrosOf(t))
}

// rfc3339Shape refuses what time.Parse forgives: hours of one digit, a decimal comma and zones
// of a day or more.
func rfc3339Shape(s []byte) bool {
	const layout = "0000-00-00T00:00:00"
	if len(s) <= len(layout) || !shaped(s[:len(layout)], layout) {
		return false
	}
	rest := s[len(layout):]
	if rest[0] == '.' {
		digits := 1
		for digits < len(rest) && isDigit(rest[digits]) {
			digits++
		}
		if digits == 1 {
			return false
		}
		rest = rest[digits:]
	}
	if len(rest) == 1 {
		return rest[0] == 'Z'
	}
	return len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && shaped(rest[1:], "00:00") &&
		string(rest[1:3]) <= "23" && string(rest[4:6]) <= "59"
}

// shaped tells whether s has the layout's characters, any digit standing for a 0.
func shaped(s []byte, layout string) bool {
	if len(s) != len(layout) {
		return false
	}
	for i, c := range s {
		if layout[i] == '0' && !isDigit(c) || layout[i] != '0' && c != layout[i] {
			return false
		}
	}
	return true
}

// unix reads a decimal number of units since the epoch, scale being the decimal places from the
// unit to microseconds. The arithmetic is on digits: a float would lose microseconds.
func unix(v *value, scale int) (stream.Micros, bool) {
	if !v.scalar() {
		return 0, false
	}
	negative, digits, point, ok := decimal(v.text)
	if !ok {
		return 0, false
	}
	// More than 18 digits before the point lie past the year 9999 in any unit.
	point += scale
	if point > 18 {
		return 0, false
	}
	var micros int64
	rest := digits
	if point > 0 {
		whole := digits[:min(point, len(digits))]
		rest = digits[len(whole):]
		for _, d := range whole {
			micros = micros*10 + int64(d-'0')
		}
		for range point - len(whole) {
			micros *= 10
		}
	}
	if negative {
		micros = -micros
		if len(rest) > 0 {
			micros-- // toward the past, as for text
		}
	}
	return inRange(stream.Micros(micros))
}

// decimal splits a decimal number into its significant digits, without zeros at either end, and
// the place of the point counted from the first of them.
func decimal(s []byte) (negative bool, digits []byte, point int, ok bool) {
	s, negative = bytes.CutPrefix(s, []byte("-"))
	exponent := int64(0)
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.ParseInt(string(s[i+1:]), 10, 16); err != nil {
			return false, nil, 0, false
		}
		s = s[:i]
	}
	whole, fraction, hasPoint := bytes.Cut(s, []byte("."))
	if !allDigits(whole) || hasPoint && !allDigits(fraction) {
		return false, nil, 0, false
	}
	digits = append(append(make([]byte, 0, 32), whole...), fraction...)
	point = len(whole) + int(exponent)
	significant := bytes.TrimLeft(digits, "0")
	point -= len(digits) - len(significant)
	digits = bytes.TrimRight(significant, "0")
	if len(digits) == 0 {
		point = 0
	}
	return negative, digits, point, true
}

func inRange(at stream.Micros) (stream.Micros, bool) { return at, at >= timeMin && at < timeMax }

func allDigits(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
