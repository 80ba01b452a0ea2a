package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Comparison is what a candidate was found to change in its base, the generation that serves. In JSON
// its fields have the names of the columns of validation.
type Comparison struct {
	Generation int32 `json:"generation_id"`
	Base       int32 `json:"base"`
	// Number counts the comparisons of the candidate from 1.
	Number int32 `json:"number"`
	Scope  Scope `json:"scope"`
	// Passed is true when no difference is unexplained, no row of the candidate is damaged and it
	// has read what its base has.
	Passed bool `json:"passed"`
	// OnlyBase, OnlyCandidate and InBoth count results; a result in both can differ as well.
	OnlyBase      int64 `json:"only_base"`
	OnlyCandidate int64 `json:"only_candidate"`
	InBoth        int64 `json:"in_both"`
	// Explained and Unexplained count differences.
	Explained   int64   `json:"explained"`
	Unexplained int64   `json:"unexplained"`
	Totals      []Total `json:"totals"`
	// Differences holds at most 1000: what can't be accepted, then the unexplained, then the rest.
	Differences []Difference `json:"differences"`
	// AcceptedBy and AcceptedWhy say who accepts the unexplained differences; empty for nobody.
	AcceptedBy  string    `json:"accepted_by,omitempty"`
	AcceptedWhy string    `json:"accepted_why,omitempty"`
	ValidatedAt time.Time `json:"validated_at"`
}

// Scope says which results a comparison looked at.
type Scope string

// The scopes of a comparison. Of an interval each is only over the results that it settles.
const (
	// EveryResult is all active results: both generations had read equally far.
	EveryResult Scope = "all"
	// FinalResults are those whose horizon both watermarks have passed: neither can change them.
	FinalResults Scope = "final"
)

// Total is one figure of both generations, exact. By is results, keys (distinct ones), status, kind,
// verdict, differing (how often the compared field Name is not equal), difference (the sum of
// right minus left over the field Name, of numbers) or day (in UTC, of the earlier member's time; of
// the newest 400, the others are "earlier").
type Total struct {
	By        string      `json:"by"`
	Name      string      `json:"name"`
	Base      json.Number `json:"base"`
	Candidate json.Number `json:"candidate"`
}

// DifferenceKind says how a candidate differs from its base.
type DifferenceKind string

// The kinds of difference. The last two are not of results, and nobody can accept them.
const (
	OnlyBase      DifferenceKind = "only_base"
	OnlyCandidate DifferenceKind = "only_candidate"
	// Changed is a result of both that says something else.
	Changed DifferenceKind = "changed"
	// Damaged is a row of the candidate that is not what was written.
	Damaged DifferenceKind = "damage"
	// NotCovered is something that the base has read and the candidate has not, or that an interval
	// leaves out.
	NotCovered DifferenceKind = "coverage"
)

// Difference is one result that one generation has and the other has not, or has otherwise.
type Difference struct {
	Kind DifferenceKind `json:"kind"`
	// What says in words what is damaged or not covered; the other fields are then empty.
	What string `json:"what,omitempty"`
	// MatchID is in hex; of the candidate where both have the result.
	MatchID string `json:"match_id,omitempty"`
	// Result is the kind of the result.
	Result        string  `json:"result,omitempty"`
	LeftID        *string `json:"left_id,omitempty"`
	LeftRevision  *int64  `json:"left_revision,omitempty"`
	RightID       *string `json:"right_id,omitempty"`
	RightRevision *int64  `json:"right_revision,omitempty"`
	Key           string  `json:"key,omitempty"`
	// Changed names the columns that differ of a result that both have.
	Changed []string `json:"changed,omitempty"`
	// Base and Candidate are what each says of it; nil where it has no such result.
	Base      *Said `json:"base,omitempty"`
	Candidate *Said `json:"candidate,omitempty"`
	// ExplainedBy names corrections of the base as shard-epoch-ordinal, at most ten of each
	// member, or the new rule; empty when nothing explains it.
	ExplainedBy []string `json:"explained_by"`
}

// Acceptable tells whether somebody may accept the difference.
func (d *Difference) Acceptable() bool { return d.Kind != Damaged && d.Kind != NotCovered }

// Said is what a generation says of a result.
type Said struct {
	Status      string          `json:"status"`
	Key         string          `json:"key"`
	LeftTime    *time.Time      `json:"left_time"`
	RightTime   *time.Time      `json:"right_time"`
	Verdict     *string         `json:"verdict"`
	Differences json.RawMessage `json:"differences"`
}

// Accepted tells whether the candidate may be promoted as far as the comparison goes.
func (c *Comparison) Accepted() bool { return c.Passed || c.AcceptedBy != "" }

// Validate compares a candidate with its base, which serves, and stores the outcome as the newest.
// It may run beside the workers of both. It returns ErrNotReady when the generation is no candidate
// or its base does not serve any more. A comparison that does not pass is no error.
//
// The rows of the candidate are verified first, each shard in a snapshot of its own; the comparison
// is then of one moment. Both hold the horizon of dead rows back only while they read.
func (s *Store) Validate(ctx context.Context, candidate int32) (c Comparison, err error) {
	v := validation{store: s, candidate: candidate}
	if err := v.verify(ctx); err != nil {
		return c, err
	}
	err = s.retry(ctx, func() error {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
			c, err = v.compareTx(ctx, tx)
			return err
		})
	})
	if err == nil {
		err = s.retry(ctx, func() error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return v.storeTx(ctx, tx, &c) })
		})
	}
	if err != nil {
		return c, fmt.Errorf("validate generation %d: %w", candidate, err)
	}
	return c, nil
}

// Validated gives the newest comparison of a candidate; ErrNotValidated when there is none.
func (s *Store) Validated(ctx context.Context, candidate int32) (c Comparison, err error) {
	err = s.retry(ctx, func() error {
		row := s.pool.QueryRow(ctx, s.sql("validate_newest"), candidate)
		err := row.Scan(&c.Generation, &c.Base, &c.Number, &c.Scope, &c.Passed, &c.OnlyBase,
			&c.OnlyCandidate, &c.InBoth, &c.Explained, &c.Unexplained, &c.Totals, &c.Differences,
			&c.AcceptedBy, &c.AcceptedWhy, &c.ValidatedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w; run tally rebuild validate", ErrNotValidated)
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("read the validation of generation %d: %w", candidate, err)
	}
	return c, nil
}

// Accept notes in the newest comparison of a candidate who accepts its unexplained differences, and
// why; neither may be empty. It returns ErrNotValidated when there is no comparison, or it found
// damage or something that the candidate has not read: those nobody can accept.
func (s *Store) Accept(
	ctx context.Context, candidate int32, by, why string,
) (c Comparison, err error) {
	if by == "" || why == "" {
		return c, fmt.Errorf("accept the differences of generation %d: say who accepts them and why",
			candidate)
	}
	c, err = s.Validated(ctx, candidate)
	if err != nil || c.Passed {
		return c, err
	}
	if len(c.Differences) > 0 && !c.Differences[0].Acceptable() {
		return c, fmt.Errorf("accept the differences of generation %d: %w: %s; this can't be "+
			"accepted: let tally rebuild run go on, or abandon the candidate and start again",
			candidate, ErrNotValidated, c.Differences[0].What)
	}
	err = s.retry(ctx, func() error {
		tag, err := s.pool.Exec(ctx, s.sql("validate_accept"), candidate, c.Number, by, why)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("%w: it was validated again meanwhile; look at what differs now",
				ErrNotValidated)
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("accept the differences of generation %d: %w", candidate, err)
	}
	c.AcceptedBy, c.AcceptedWhy = by, why
	return c, nil
}
