package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Registration is what a worker believes of its reconciliation when it starts.
type Registration struct {
	Name        string
	RuleVersion string
	// Rule is the rule as JSON; it is compared as jsonb, so spaces and order don't matter.
	Rule   []byte
	Shards int
}

// Register makes sure that the reconciliation has a serving generation of this rule and gives its
// number; the first call creates it. It returns ErrRuleChanged or ErrOtherRule when the serving
// generation is not of this rule. Workers may call it at once.
func (s *Store) Register(ctx context.Context, r Registration) (generation int32, err error) {
	err = s.retry(ctx, func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			generation, err = s.registerTx(ctx, tx, r)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("register reconciliation %s: %w", r.Name, err)
	}
	return generation, nil
}

func (s *Store) registerTx(ctx context.Context, tx pgx.Tx, r Registration) (int32, error) {
	if _, err := tx.Exec(ctx, s.sql("register_reconciliation"), r.Name); err != nil {
		return 0, fmt.Errorf("lock it: %w", err)
	}
	var generation, shards int32
	var version string
	var changed []string
	row := tx.QueryRow(ctx, s.sql("serving"), r.Name, string(r.Rule))
	err := row.Scan(&generation, &version, &shards, &changed)
	if errors.Is(err, pgx.ErrNoRows) {
		row := tx.QueryRow(ctx, s.sql("register_generation"),
			r.Name, r.RuleVersion, string(r.Rule), r.Shards)
		if err := row.Scan(&generation); err != nil {
			return 0, fmt.Errorf("create its first generation: %w", err)
		}
		return generation, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the serving generation: %w", err)
	}
	switch {
	case version != r.RuleVersion || int(shards) != r.Shards:
		return 0, fmt.Errorf("%w: generation %d has version %s and %d shards, the configuration "+
			"version %s and %d; tally rebuild --auto builds one of the configuration and lets it "+
			"serve; or go back to the old configuration",
			ErrOtherRule, generation, version, shards, r.RuleVersion, r.Shards)
	case len(changed) > 0:
		return 0, fmt.Errorf("%w %s: %s not as generation %d has it; give the changed rule a new "+
			"rule.version and run tally rebuild --auto, or undo the change", ErrRuleChanged, version, strings.Join(changed, ", "), generation)
	}
	return generation, nil
}
