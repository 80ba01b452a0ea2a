package oracle

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// BatchSQL are the statements of Batch, which the callers have: the table of raw events and the join
// over them. The product's crash lab uses the same.
type BatchSQL struct{ RawEvent, Join string }

// Batch gives the active results at the end of a confluent history, computed by one SQL statement
// over its raw events: sorted lines as in "matched o1/1 i1/1", "final o1/1 -" or "final - i1/1".
// It makes a temporary table that goes with the transaction, so one transaction serves one call.
func Batch(ctx context.Context, tx pgx.Tx, h *History, sql BatchSQL) ([]string, error) {
	if _, err := tx.Exec(ctx, sql.RawEvent); err != nil {
		return nil, fmt.Errorf("create the raw events of seed %d: %w", h.Seed, err)
	}
	columns := []string{
		"side", "source", "partition", "ordinal", "id", "revision", "key", "time_us",
		"has_time", "deleted", "attributes",
	}
	rows := rawEvents(h)
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"raw_event"}, columns, pgx.CopyFromRows(rows))
	if err != nil {
		return nil, fmt.Errorf("load %d raw events of seed %d: %w", len(rows), h.Seed, err)
	}
	found, err := tx.Query(ctx, sql.Join, h.Rule.Join, h.Rule.Before.Microseconds(),
		h.Rule.After.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("join the raw events of seed %d: %w", h.Seed, err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the batch result of seed %d: %w", h.Seed, err)
	}
	slices.Sort(lines)
	return lines, nil
}

func rawEvents(h *History) (rows [][]any) {
	for _, lane := range h.Lanes {
		for i, r := range lane.Records {
			if r.Reason != "" {
				continue
			}
			e := r.Event
			var micros *int64
			if e.HasTime {
				at := int64(e.Time)
				micros = &at
			}
			rows = append(rows, []any{
				lane.Side.String(), lane.Source, lane.Number, int64(i + 1), e.ID, e.Revision,
				e.Key, micros, e.HasTime, e.Deleted, e.Attributes,
			})
		}
	}
	return rows
}
