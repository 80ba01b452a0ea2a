// Package join is the pure state machine of a reconciliation: which events meet, which wait, what
// closes and what expires. It does no I/O and knows no clock; time arrives with the events.
//
// An epoch is two calls: State.Needs says what must be known of the stored state, and State.Step
// takes that with the epoch's batch and returns everything the epoch changes. What is held in
// memory between epochs is a cache of the stored state and never changes a result.
//
// A State joins one shard of the join keys, and must be given every record. It acts on events whose
// key it owns, on newer revisions of ids it holds and on tombstones without a key; what else it reads
// only moves the watermark. Where another shard owns the key of such a newer revision, or of a
// revision above 1 of an unknown id, the shard keeps a marker: a buffer row that joins nothing, and
// that makes older revisions stale for as long as they could come. Rows that only keep older revisions
// out count as out of shard, though they are among the rows added.
//
// A shard that has sealed an event sets a revision that moves it to another shard aside as a
// correction and keeps its results. The other shard cannot know of that and joins the revision as any
// other, so that both show until a rebuild settles the correction.
package join

import (
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Kind is the join kind: which sides' unmatched events become results.
type Kind string

// The join kinds.
const (
	Inner     Kind = "inner"
	LeftJoin  Kind = "left"
	RightJoin Kind = "right"
	Full      Kind = "full"
)

// Policy says when an unmatched event is shown as provisional.
type Policy string

// The provisional policies.
const (
	AtWindowClose Policy = "at-window-close"
	Eager         Policy = "eager"
	Never         Policy = "never"
)

// Rule is the join rule. A left event at t and a right event at u of equal key match when
// t - Before <= u <= t + After.
type Rule struct {
	// Version enters every identity.
	Version string
	Kind    Kind
	// Before and After span the window; both may be zero, neither negative.
	Before, After time.Duration
	// Lateness is how far behind the low watermark an event is still taken.
	Lateness    time.Duration
	Provisional Policy
}

// Validate reports the first impossible value.
func (r Rule) Validate() error {
	switch {
	case r.Version == "":
		return errors.New("rule.version: must not be empty, it enters every identity")
	case r.Kind != Inner && r.Kind != LeftJoin && r.Kind != RightJoin && r.Kind != Full:
		return fmt.Errorf("rule.join: %q is none of inner, left, right, full", r.Kind)
	case r.Provisional != AtWindowClose && r.Provisional != Eager && r.Provisional != Never:
		return fmt.Errorf("rule.provisional: %q is none of at-window-close, eager, never",
			r.Provisional)
	case r.Before < 0 || r.After < 0 || r.Lateness < 0:
		return errors.New("rule: before, after and lateness must not be negative")
	}
	return nil
}

// keepsUnmatched tells whether an unmatched event of this side is a result.
func (r Rule) keepsUnmatched(side stream.Side) bool {
	return r.Kind == Full || (r.Kind == LeftJoin && side == stream.Left) ||
		(r.Kind == RightJoin && side == stream.Right)
}

// reach gives how far an event of this side looks back and ahead for partners.
func (r Rule) reach(side stream.Side) (back, ahead time.Duration) {
	if side == stream.Left {
		return r.Before, r.After
	}
	return r.After, r.Before
}

// windowEnd is the last event time at which a partner of the event can occur.
func (r Rule) windowEnd(side stream.Side, at stream.Micros) stream.Micros {
	_, ahead := r.reach(side)
	return at.Add(ahead)
}

// horizon is the low watermark past which no partner can be accepted any more.
func (r Rule) horizon(side stream.Side, at stream.Micros) stream.Micros {
	return r.windowEnd(side, at).Add(r.Lateness)
}

// late tells whether an event at this time comes too late for live state.
func (r Rule) late(at, watermark stream.Micros) bool { return at.Add(r.Lateness) < watermark }

// affected is the interval of event times whose results an event at this time can touch.
func (r Rule) affected(at stream.Micros) stream.Range {
	reach := max(r.Before, r.After)
	return stream.Range{From: at.Add(-reach), To: at.Add(reach)}
}
