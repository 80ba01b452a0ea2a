package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestReaderSeesOneTruth reads the views after every commit of random histories with restarts: no
// event revision is matched and unmatched at once, nothing shown disappears without having been
// withdrawn, and results_final never loses a row.
func TestReaderSeesOneTruth(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	reads := 0
	for seed := range oracle.Seeds(t, 600, 40) {
		for _, flavour := range []oracle.Flavour{oracle.Confluent, oracle.Adversarial} {
			history := oracle.Generate(seed, flavour)
			r := &reader{db: db, name: fmt.Sprintf("%s-%d", flavour, seed)}
			if err := r.follow(t, st, history); err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, flavour, err,
					history.Describe(history.Split(seed)))
			}
			reads += r.reads
		}
	}
	if reads < 500 {
		t.Errorf("only %d commits were looked at", reads)
	}
}

// reader remembers what it was shown.
type reader struct {
	db    *testenv.Database
	name  string
	reads int
	epoch int64
	shown map[string]string
	final map[string]bool
	err   error
}

func (r *reader) follow(t *testing.T, st *store.Store, history *oracle.History) error {
	generation := register(t, st, r.name, history.Rule.Version)
	rng := rand.New(rand.NewPCG(history.Seed, 5))
	for run := 1; ; run++ {
		stopped, err := runOnce(t, st, generation, history, rng, run, func(d *stream.Delta) {
			r.err = errors.Join(r.err, r.look(t.Context(), d.Epoch))
		})
		if err := errors.Join(err, r.err); err != nil || !stopped {
			return err
		}
	}
}

// look compares what the views show after an epoch with what they showed before it.
func (r *reader) look(ctx context.Context, epoch int64) error {
	r.reads++
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, r.db.Pool, options, func(tx pgx.Tx) error {
		shown, err := r.results(ctx, tx)
		if err != nil {
			return err
		}
		for id := range r.shown {
			if _, still := shown[id]; !still {
				if err := r.mustBeWithdrawn(ctx, tx, id); err != nil {
					return fmt.Errorf("epoch %d: %w", epoch, err)
				}
			}
		}
		final, err := texts(ctx, tx,
			"select match_id from tally.results_final where reconciliation = $1", r.name)
		if err != nil {
			return err
		}
		for id := range r.final {
			if !final[id] {
				return fmt.Errorf("epoch %d: results_final lost %s", epoch, id)
			}
		}
		r.shown, r.final, r.epoch = shown, final, epoch
		return nil
	})
}

// results gives the active rows by identity, after checking that they do not contradict each other.
func (r *reader) results(ctx context.Context, tx pgx.Tx) (map[string]string, error) {
	rows, err := tx.Query(ctx, `
		select match_id, kind, coalesce('L' || left_id || '/' || left_revision, ''),
			coalesce('R' || right_id || '/' || right_revision, '')
		from tally.results where reconciliation = $1`, r.name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	shown, matched, alone := map[string]string{}, map[string]bool{}, map[string]bool{}
	for rows.Next() {
		var id, kind, left, right string
		if err := rows.Scan(&id, &kind, &left, &right); err != nil {
			return nil, err
		}
		shown[id] = kind
		if kind == "pair" {
			matched[left], matched[right] = true, true
		} else {
			alone[left+right] = true
		}
	}
	for event := range alone {
		if matched[event] {
			return nil, fmt.Errorf("%s is matched and unmatched at once", event)
		}
	}
	return shown, rows.Err()
}

func (r *reader) mustBeWithdrawn(ctx context.Context, tx pgx.Tx, id string) error {
	withdrawn, err := texts(ctx, tx, `select to_status from tally.result_history
		where reconciliation = $1 and match_id = $2 and epoch > $3`, r.name, id, r.epoch)
	if err != nil {
		return err
	}
	if !withdrawn["retracted"] && !withdrawn["superseded"] {
		return fmt.Errorf("%s disappeared and was not withdrawn", id)
	}
	return nil
}

func texts(ctx context.Context, tx pgx.Tx, sql string, args ...any) (map[string]bool, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	set := make(map[string]bool, len(list))
	for _, text := range list {
		set[text] = true
	}
	return set, err
}
