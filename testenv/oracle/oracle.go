// Package oracle says what a reconciliation must give, independently of the engine that gives it:
// a naive model that recomputes everything each epoch, one SQL join over the raw events, and seeded
// histories to try both and the engine on. It shares no code with the engine, only the meaning.
package oracle

import (
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Join kinds and provisional policies, by the names they have in a configuration.
const (
	JoinInner = "inner"
	JoinLeft  = "left"
	JoinRight = "right"
	JoinFull  = "full"

	Eager         = "eager"
	AtWindowClose = "at-window-close"
	Never         = "never"
)

// Rule is everything besides the events that decides what an epoch gives.
type Rule struct {
	Version string
	// Join is inner, left, right or full.
	Join string
	// A left event at t and a right event at u match when t - Before <= u <= t + After.
	Before, After time.Duration
	Lateness      time.Duration
	// Provisional is eager, at-window-close or never.
	Provisional string
	// OutOfOrderness is by side.
	OutOfOrderness [2]time.Duration
	// MaxSkew and MaxAhead bound how far an event may be ahead of the epoch's clock.
	MaxSkew, MaxAhead time.Duration
}

// WindowEnd is the last event time at which a partner of an event of side s at time t can be.
func (r *Rule) WindowEnd(s stream.Side, t stream.Micros) stream.Micros {
	if s == stream.Left {
		return t.Add(r.After)
	}
	return t.Add(r.Before)
}

// Horizon is the low watermark past which an event of side s at time t leaves the buffer.
func (r *Rule) Horizon(s stream.Side, t stream.Micros) stream.Micros {
	return r.WindowEnd(s, t).Add(r.Lateness)
}

// Slice is what one epoch reads of one partition, in source order.
type Slice struct {
	stream.Partition
	Records []stream.Record
}

// Epoch is the input of one step.
type Epoch struct {
	// Clock is the database clock the epoch is judged by.
	Clock  stream.Micros
	Slices []Slice
	// Sealed names the partitions whose end is reached with this epoch: their watermark moves to
	// +infinity at its end.
	Sealed []stream.Partition
	// Held is set while a candidate catches up: the low watermark stays where it is. Release, in an
	// epoch without records, puts the watermarks where those of the serving generation were.
	Held, Release *stream.CatchUp
}
