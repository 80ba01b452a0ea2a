// Package stream holds the values that sources, the join and the store speak to each other:
// events, positions, epochs and what an epoch changes. It does no I/O and knows no clock.
package stream

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrPositionLost reports that a source cannot give the position asked for, or is not the source
// it was: a file that shrank or whose head changed, a table rewound. The worker stops.
var ErrPositionLost = errors.New("source cannot give the position needed")

// ErrUnusable reports that a source cannot be read as it is configured: no such file or column,
// rows hidden from the role. Only a changed configuration or right helps, not another try.
var ErrUnusable = errors.New("source cannot be used as configured")

// Side is one of the two streams of a reconciliation.
type Side uint8

// The two sides. Left comes before Right wherever source positions are compared.
const (
	Left Side = iota
	Right
)

// String gives the side's name as it is stored: left or right.
func (s Side) String() string {
	if s == Left {
		return "left"
	}
	return "right"
}

// Other gives the opposite side.
func (s Side) Other() Side { return 1 - s }

// ParseSide is the inverse of Side.String.
func ParseSide(name string) (Side, error) {
	switch name {
	case "left":
		return Left, nil
	case "right":
		return Right, nil
	}
	return 0, fmt.Errorf("side %q: want left or right", name)
}

// Micros is a point in event time: microseconds since the Unix epoch, or one of the two infinities.
type Micros int64

// The infinities order below and above every event time, as Postgres' timestamps do.
const (
	NegInfinity Micros = math.MinInt64
	Infinity    Micros = math.MaxInt64
)

// MicrosOf cuts t to microseconds, toward the past.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Add moves m by d, cut to microseconds; an infinity stays where it is.
func (m Micros) Add(d time.Duration) Micros {
	if !m.Finite() {
		return m
	}
	return m + Micros(d.Microseconds())
}

// Finite tells whether m is a real point in time.
func (m Micros) Finite() bool { return m != NegInfinity && m != Infinity }

// Time gives m in UTC. It panics on an infinity, which has no time.
func (m Micros) Time() time.Time {
	if !m.Finite() {
		panic(fmt.Sprintf("stream: no time for %s", m))
	}
	return time.UnixMicro(int64(m)).UTC()
}

// String gives RFC 3339 with microseconds, or infinity and -infinity as Postgres writes them.
func (m Micros) String() string {
	switch m {
	case NegInfinity:
		return "-infinity"
	case Infinity:
		return "infinity"
	}
	return m.Time().Format("2006-01-02T15:04:05.000000Z07:00")
}

// Event is one revision of one fact on one side.
type Event struct {
	ID       string
	Revision int64
	// Key is the encoded join key; empty only on a tombstone that carries none.
	Key string
	// Time is the event time. HasTime is false only on a tombstone that carries none.
	Time    Micros
	HasTime bool
	// Deleted marks a tombstone: the event withdraws.
	Deleted bool
	// Attributes is the canonical JSON object of what is not mapped to the fields above.
	Attributes string
}

// SameContent tells whether two revisions say the same: key, time, deleted flag and attributes.
func (e *Event) SameContent(o *Event) bool {
	return e.Key == o.Key && e.HasTime == o.HasTime && (!e.HasTime || e.Time == o.Time) &&
		e.Deleted == o.Deleted && e.Attributes == o.Attributes
}

// Record is one record as a source delivered it: an event, or the reason why it is none.
type Record struct {
	Event Event
	// Reason is empty for an event; otherwise the record goes to the quarantine under it.
	Reason Reason
	// Raw is the record as it was read, cut at the source's size limit.
	Raw []byte
	// Position is the source position just past this record.
	Position string
}

// Reason says why a record was quarantined or an event set aside.
type Reason string

// Reasons of quarantine.
const (
	NotJSON             Reason = "not_json"
	NotObject           Reason = "not_object"
	DuplicateField      Reason = "duplicate_field"
	BadUTF8             Reason = "bad_utf8"
	NulCharacter        Reason = "nul_character"
	TooLarge            Reason = "too_large"
	ShortRow            Reason = "short_row"
	BadRow              Reason = "bad_row"
	MissingID           Reason = "missing_id"
	MissingKey          Reason = "missing_key"
	BadType             Reason = "bad_type"
	BadRevision         Reason = "bad_revision"
	BadTime             Reason = "bad_time"
	BadNumber           Reason = "bad_number"
	FarFuture           Reason = "far_future"
	ConflictingRevision Reason = "conflicting_revision"
	HotKey              Reason = "hot_key"
)

// Reasons of a correction.
const (
	PastHorizon    Reason = "past_horizon"
	SealedRevision Reason = "sealed_revision"
)

// Partition names one ordered part of one side's input.
type Partition struct {
	Side   Side
	Source string
	Number int32
}

// String gives side/source/number.
func (p Partition) String() string { return fmt.Sprintf("%s/%s/%d", p.Side, p.Source, p.Number) }

// Compare orders partitions as source positions are ordered: left first, then source, then number.
func (p Partition) Compare(o Partition) int {
	switch {
	case p.Side != o.Side:
		return int(p.Side) - int(o.Side)
	case p.Source != o.Source:
		if p.Source < o.Source {
			return -1
		}
		return 1
	}
	return int(p.Number) - int(o.Number)
}
