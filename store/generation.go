package store

import (
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Generation is one complete set of state and results of a reconciliation.
type Generation struct {
	ID             int32
	Reconciliation string
	RuleVersion    string
	Shards         int32
	Kind           GenerationKind
	Status         GenerationStatus
	CreatedAt      time.Time
	StatusAt       time.Time
	// Base is the generation that served when it was begun; 0 for the first.
	Base int32
	// Interval is the range of event times that an interval settles.
	Interval stream.Range
	// CatchUp is where the base stood then; nil for the first generation.
	CatchUp *stream.CatchUp
}

// GenerationKind says what a generation is built over.
type GenerationKind string

// The kinds of generation.
const (
	// Full is built over all that the sources have.
	Full GenerationKind = "full"
	// Interval is built over a range of event times, to be merged into its base.
	Interval GenerationKind = "interval"
)

// GenerationStatus says what a generation is for.
type GenerationStatus string

// The statuses of a generation.
const (
	// Candidate is being built, or followed as a shadow; no view shows it.
	Candidate GenerationStatus = "candidate"
	Serving   GenerationStatus = "serving"
	// Retired has served, and can serve again.
	Retired GenerationStatus = "retired"
	// Merged is an interval whose differences its base took over.
	Merged    GenerationStatus = "merged"
	Abandoned GenerationStatus = "abandoned"
	// Purged has lost its rows.
	Purged GenerationStatus = "purged"
)
