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

// rfc3339 reads RFC 3339 text with its zone, cut to microseconds toward the past. It is stricter
// than time.Parse, which forgives hours of one digit, a decimal comma and zones of a day or more.
func rfc3339(v *value) (stream.Micros, bool) {
	s := v.text
	if v.kind != text && v.kind != cell || len(s) < len("0000-00-00T00:00:00Z") ||
		s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	century, years, month, day := twoDigits(s), twoDigits(s[2:]), twoDigits(s[5:]), twoDigits(s[8:])
	hour, minute, second := twoDigits(s[11:]), twoDigits(s[14:]), twoDigits(s[17:])
	fraction, zone, ok := fractionMicros(s[19:])
	ahead, known := zoneMinutes(zone)
	if min(century, years, hour, minute, second) < 0 ||
		hour > 23 || minute > 59 || second > 59 || !ok || !known {
		return 0, false
	}
	year := century*100 + years
	if day < 1 || day > monthDays(year, month) {
		return 0, false
	}
	at := time.Date(year, time.Month(month), day, hour, minute-ahead, second, 0, time.UTC)
	return inRange(stream.Micros(at.Unix()*1_000_000 + fraction))
}

// fractionMicros reads the digits of a second's fraction, if there is one, and gives what follows
// them. The seventh digit and later ones are cut off.
func fractionMicros(s []byte) (micros int64, rest []byte, ok bool) {
	if s[0] != '.' {
		return 0, s, true
	}
	unit := int64(100_000)
	for s = s[1:]; len(s) > 0 && isDigit(s[0]); s = s[1:] {
		micros += int64(s[0]-'0') * unit
		unit /= 10
		ok = true
	}
	return micros, s, ok
}

// zoneMinutes gives how far a zone is ahead of UTC.
func zoneMinutes(s []byte) (int, bool) {
	if len(s) == 1 && s[0] == 'Z' {
		return 0, true
	}
	if len(s) != len("+00:00") || s[3] != ':' {
		return 0, false
	}
	hours, minutes := twoDigits(s[1:]), twoDigits(s[4:])
	ok := min(hours, minutes) >= 0 && hours <= 23 && minutes <= 59
	switch s[0] {
	case '+':
		return hours*60 + minutes, ok
	case '-':
		return -hours*60 - minutes, ok
	}
	return 0, false
}

// twoDigits reads the number of two decimal digits, or gives -1.
func twoDigits(s []byte) int {
	if !isDigit(s[0]) || !isDigit(s[1]) {
		return -1
	}
	return int(s[0]-'0')*10 + int(s[1]-'0')
}

// monthDays gives how many days a month has, 0 where there is no such month.
func monthDays(year, month int) int {
	switch month {
	case 1, 3, 5, 7, 8, 10, 12:
		return 31
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 0
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
