package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// differencesNoted bounds how many differences a comparison lists.
	differencesNoted = 1000
	// damagesListed bounds how many of them are damaged rows.
	damagesListed = 100
)

// validation compares one candidate.
type validation struct {
	store     *Store
	candidate int32
	// refused is what no one can accept: damage, and what was not read.
	refused []Difference
	scope   scope
}

// scope is what is compared, and with what.
type scope struct {
	status        GenerationStatus
	base, serving int32
	shards        int32
	// explainedBy explains every difference; nil where both have the same rule.
	explainedBy *string
	// from and to bound the member times of an interval, horizon the results that are compared;
	// null for all.
	from, to, horizon pgtype.Timestamptz
}

// verify looks for damage in every shard of the candidate.
func (v *validation) verify(ctx context.Context) error {
	if err := v.read(ctx, v.store.pool); err != nil {
		return fmt.Errorf("validate generation %d: %w", v.candidate, err)
	}
	var found []Difference
	for shard := range v.scope.shards {
		report, err := v.store.Verify(ctx, v.candidate, shard, false)
		if err != nil {
			return fmt.Errorf("validate generation %d: %w", v.candidate, err)
		}
		for _, d := range report.Damage {
			found = append(found, Difference{
				Kind: Damaged, What: fmt.Sprintf("shard %d: %s", shard, d), ExplainedBy: []string{},
			})
		}
	}
	v.refused = found[:min(len(found), damagesListed)]
	return nil
}

// asked is what runs a query: a pool or a transaction.
type asked interface {
	asker
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// read finds out what the candidate is compared with, and how far.
func (v *validation) read(ctx context.Context, db asked) error {
	var c scope
	row := db.QueryRow(ctx, v.store.sql("validate_scope"), v.candidate)
	err := row.Scan(&c.status, &c.base, &c.serving, &c.shards, &c.explainedBy, &c.from, &c.to,
		&c.horizon)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: there is no such generation; see tally generation list", ErrNotReady)
	case err != nil:
		return fmt.Errorf("read what it is compared with: %w", err)
	case c.status != Candidate:
		return fmt.Errorf("%w: it is %s; see tally generation list", ErrNotReady, c.status)
	case c.base != c.serving:
		return fmt.Errorf("%w: it was begun on generation %d, and %d serves now; abandon it and "+
			"start again", ErrNotReady, c.base, c.serving)
	}
	v.scope = c
	return nil
}

// compareTx compares what is stored at one moment.
func (v *validation) compareTx(ctx context.Context, tx pgx.Tx) (Comparison, error) {
	if err := v.read(ctx, tx); err != nil {
		return Comparison{}, err
	}
	if err := v.store.planScans(ctx, tx); err != nil {
		return Comparison{}, err
	}
	c := Comparison{Generation: v.candidate, Base: v.scope.base, Scope: EveryResult}
	if v.scope.horizon.Valid {
		c.Scope = FinalResults
	}
	uncovered, err := v.coverage(ctx, tx)
	if err != nil {
		return c, fmt.Errorf("see what it has read: %w", err)
	}
	if err := v.results(ctx, tx, &c); err != nil {
		return c, fmt.Errorf("compare it with generation %d: %w", c.Base, err)
	}
	if err := v.totals(ctx, tx, &c); err != nil {
		return c, fmt.Errorf("add up its results and those of generation %d: %w", c.Base, err)
	}
	refused := slices.Concat(v.refused, uncovered)
	c.Passed = c.Unexplained == 0 && len(refused) == 0
	all := slices.Concat([]Difference{}, refused, c.Differences)
	c.Differences = all[:min(len(all), differencesNoted)]
	return c, nil
}

// compared gives the parameters that say which results are compared.
func (v *validation) compared() []any {
	return []any{v.scope.base, v.candidate, v.scope.horizon, v.scope.from, v.scope.to}
}

// coverage lists what the candidate has not read, and what its interval leaves out. Under the rule of
// its base what was not read would show in the results as well; under another one, where no difference
// is unexplained, events that it does not know tell.
func (v *validation) coverage(ctx context.Context, tx pgx.Tx) ([]Difference, error) {
	missing, err := v.lines(ctx, tx, "validate_coverage", v.scope.base, v.candidate)
	if err == nil && v.scope.from.Valid {
		var outside []Difference
		outside, err = v.lines(ctx, tx, "validate_outside", v.scope.base, v.candidate, v.scope.from,
			v.scope.to, damagesListed)
		missing = append(missing, outside...)
	}
	if err != nil || v.scope.explainedBy == nil {
		return missing, err
	}
	unknown, err := v.lines(ctx, tx, "validate_unknown", v.compared()...)
	return append(missing, unknown...), err
}

func (v *validation) lines(
	ctx context.Context, tx pgx.Tx, statement string, args ...any,
) ([]Difference, error) {
	rows, err := tx.Query(ctx, v.store.sql(statement), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Difference, error) {
		d := Difference{Kind: NotCovered, ExplainedBy: []string{}}
		return d, row.Scan(&d.What)
	})
}

func (v *validation) results(ctx context.Context, tx pgx.Tx, c *Comparison) error {
	args := append(v.compared(), v.scope.explainedBy, differencesNoted)
	row := tx.QueryRow(ctx, v.store.sql("validate_compare"), args...)
	return row.Scan(&c.OnlyBase, &c.OnlyCandidate, &c.Explained, &c.Unexplained, &c.Differences)
}

// totals adds up, and counts what both have: that of the base which is not only there.
func (v *validation) totals(ctx context.Context, tx pgx.Tx, c *Comparison) error {
	rows, err := tx.Query(ctx, v.store.sql("validate_totals"), v.compared()...)
	if err != nil {
		return err
	}
	c.Totals, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Total, err error) {
		return t, row.Scan(&t.By, &t.Name, (*string)(&t.Base), (*string)(&t.Candidate))
	})
	if err != nil || len(c.Totals) == 0 {
		return err
	}
	all, err := c.Totals[0].Base.Int64() // the number of results comes first
	c.InBoth = all - c.OnlyBase
	return err
}

// storeTx stores a comparison as the newest, if the generation is still a candidate.
func (v *validation) storeTx(ctx context.Context, tx pgx.Tx, c *Comparison) error {
	var status GenerationStatus
	err := tx.QueryRow(ctx, v.store.sql("validate_lock"), v.candidate).Scan(&status)
	if err != nil {
		return fmt.Errorf("lock it: %w", err)
	}
	if status != Candidate {
		return fmt.Errorf("%w: it became %s meanwhile", ErrNotReady, status)
	}
	totals, err := json.Marshal(c.Totals)
	if err != nil {
		return fmt.Errorf("encode the totals: %w", err)
	}
	differences, err := json.Marshal(c.Differences)
	if err != nil {
		return fmt.Errorf("encode the differences: %w", err)
	}
	row := tx.QueryRow(ctx, v.store.sql("validate_store"), c.Generation, c.Base, c.Scope, c.Passed,
		c.OnlyBase, c.OnlyCandidate, c.InBoth, c.Explained, c.Unexplained, string(totals),
		string(differences))
	if err := row.Scan(&c.Number, &c.ValidatedAt); err != nil {
		return fmt.Errorf("store the comparison: %w", err)
	}
	return nil
}
