package torture

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/queries"
)

// expected is what must be there at the end, worked out without the engine.
type expected struct{ active, corrections, quarantine []string }

// expect joins the workload in one SQL statement, and lists what must be set aside.
func (w *workload) expect(ctx context.Context, conn *pgx.Conn, rule *Rule) (e expected, err error) {
	var events [][]any
	for side := range w.sides {
		for i, r := range w.sides[side] {
			switch {
			case r.reason != "":
				e.quarantine = append(e.quarantine,
					fmt.Sprintf("%s %s %x", r.side, r.reason, sha256.Sum256(r.line)))
			case r.late:
				e.corrections = append(e.corrections, fmt.Sprintf("%s %s/%d", r.side, r.id, r.revision))
			default:
				events = append(events, []any{
					r.side.String(), "lab", 0, i + 1, r.id, r.revision, r.key, int64(r.at), r.hasTime,
					r.deleted, "",
				})
			}
		}
	}
	slices.Sort(e.corrections)
	slices.Sort(e.quarantine)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return e, fmt.Errorf("join the events in SQL: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	if _, err := tx.Exec(ctx, queries.Torture("raw_event")); err != nil {
		return e, fmt.Errorf("make the table of raw events: %w", err)
	}
	columns := []string{
		"side", "source", "partition", "ordinal", "id", "revision", "key", "time_us", "has_time",
		"deleted", "attributes",
	}
	table := pgx.Identifier{"raw_event"}
	if _, err := tx.CopyFrom(ctx, table, columns, pgx.CopyFromRows(events)); err != nil {
		return e, fmt.Errorf("load the raw events: %w", err)
	}
	e.active, err = lines(ctx, tx, queries.Torture("batch"), rule.Join, rule.Before.Microseconds(),
		rule.After.Microseconds())
	return e, err
}

// compare reports the first difference between what is stored and what is expected.
func (e *expected) compare(ctx context.Context, conn *pgx.Conn, schema string) error {
	var errs []error
	for _, part := range []struct {
		what, statement string
		want            []string
	}{
		{"active rows", "active", e.active},
		{"open corrections", "corrections", e.corrections},
		{"quarantined records", "quarantine", e.quarantine},
		{"broken invariants", "invariants", nil},
	} {
		got, err := lines(ctx, conn, queries.Render(queries.Torture(part.statement), schema))
		if err != nil {
			return err
		}
		errs = append(errs, difference(part.what, got, part.want))
	}
	return errors.Join(errs...)
}

// difference shows the first few lines that are only in one of two sorted lists.
func difference(what string, got, want []string) error {
	const shown = 5
	missing, extra := missingIn(got, want), missingIn(want, got)
	if len(missing)+len(extra) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d, want %d", what, len(got), len(want))
	for _, list := range []struct {
		what  string
		lines []string
	}{{"missing", missing}, {"not expected", extra}} {
		for i, line := range list.lines {
			if i == shown {
				fmt.Fprintf(&b, "\n  and %d more", len(list.lines)-shown)
				break
			}
			fmt.Fprintf(&b, "\n  %s: %s", list.what, line)
		}
	}
	return errors.New(b.String())
}

// missingIn gives the lines of from that in lacks; lines may repeat, and both are sorted.
func missingIn(in, from []string) (missing []string) {
	i := 0
	for _, line := range from {
		for i < len(in) && in[i] < line {
			i++
		}
		if i < len(in) && in[i] == line {
			i++
			continue
		}
		missing = append(missing, line)
	}
	return missing
}

// lines gives the sorted rows of a query with one column of text.
func lines(
	ctx context.Context, db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}, sql string, args ...any,
) ([]string, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("look at what came of it: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look at what came of it: %w", err)
	}
	slices.Sort(found)
	return found, nil
}
