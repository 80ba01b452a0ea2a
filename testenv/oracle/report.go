package oracle

import (
	"cmp"
	"fmt"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Report is what one epoch of the model did.
type Report struct {
	WatermarkBefore, WatermarkAfter stream.Micros
	// Counts has every figure of the manifest; OutOfShard stays 0.
	Counts stream.Counts
	// Active is what is active after the epoch, sorted: "matched o1/1 i1/1", "final o1/1 -".
	Active []string
	// Transitions are the net status changes of the epoch, sorted.
	Transitions []Transition
	// Corrections and Quarantined are what this epoch set aside, in source order.
	Corrections, Quarantined []Aside
}

// Transition is one result that ended an epoch in another status than it began it with; From is
// empty where the result is new.
type Transition struct {
	// Result is the members, as in "o1/1 i1/1" or "- i1/1".
	Result   string
	From, To stream.Status
}

func (t Transition) String() string { return fmt.Sprintf("%s: %s -> %s", t.Result, t.From, t.To) }

func (t Transition) compare(o Transition) int { return cmp.Compare(t.Result, o.Result) }

func (rep *Report) setAside(a Arrival, why stream.Reason) {
	rep.Counts.Late++
	rep.Corrections = append(rep.Corrections, Aside{a, why})
}

func (rep *Report) quarantine(a Arrival, why stream.Reason) {
	rep.Counts.Quarantined++
	rep.Quarantined = append(rep.Quarantined, Aside{a, why})
}

func (rep *Report) transition(t Transition) {
	rep.Transitions = append(rep.Transitions, t)
	switch t.To {
	case stream.Matched:
		rep.Counts.Paired++
	case stream.Provisional:
		rep.Counts.ProvisionalOpened++
	case stream.Retracted:
		rep.Counts.Retracted++
	case stream.Superseded:
		rep.Counts.Superseded++
	case stream.Final:
		rep.Counts.Final++
	}
}
