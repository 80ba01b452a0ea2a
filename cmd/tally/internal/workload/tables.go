package workload

import (
	"context"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// TableName is the table of a side.
func TableName(side stream.Side) string {
	if side == stream.Left {
		return "payments"
	}
	return "risk_signals"
}

// columns of both tables in order; the sequence and the transaction are the database's.
func columns(side stream.Side) []string {
	if side == stream.Left {
		return []string{
			"payment_id", "revision", "account", "currency", "occurred_at", "amount",
			"country", "merchant", "method", "reference", "is_deleted",
		}
	}
	return []string{
		"signal_id", "revision", "account", "currency", "occurred_at", "amount",
		"country", "level", "score", "reference", "is_deleted",
	}
}

// CreateTables makes both tables in a schema, which may be there already; the tables may not.
func CreateTables(ctx context.Context, conn *pgx.Conn, schema string) error {
	sql := queries.Render(queries.Command("workload_tables"), schema)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("create the tables in schema %s: %w", schema, err)
	}
	return nil
}

// copier is what CopyNext needs of a connection or transaction.
type copier interface {
	CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error)
}

// CopyNext copies the next events of a stream into its table: those that arrive up to a time,
// infinity being all. It gives their number, and false once the stream is at its end.
func CopyNext(
	ctx context.Context, conn copier, schema string, s *Stream, upTo stream.Micros,
) (rows int64, more bool, err error) {
	source := &copySource{stream: s, upTo: upTo}
	rows, err = conn.CopyFrom(ctx, pgx.Identifier{schema, TableName(s.side)}, columns(s.side), source)
	if err != nil {
		return rows, false, fmt.Errorf("fill %s.%s: %w", schema, TableName(s.side), err)
	}
	return rows, !source.ended, nil
}

// copySource feeds a COPY from a stream.
type copySource struct {
	stream *Stream
	upTo   stream.Micros
	event  Event
	ended  bool
}

// Next steps to the next event.
func (c *copySource) Next() bool {
	arrival, more := c.stream.peek()
	if !more || arrival > c.upTo {
		c.ended = !more
		return false
	}
	c.event, _ = c.stream.Next()
	return true
}

// Values gives the event's columns. What is malformed in JSON has a form of its own in a table.
func (c *copySource) Values() ([]any, error) {
	e := &c.event
	id, account, at := any(e.ID()), any(e.AccountText()), any(e.Time.Time())
	switch e.Defect {
	case NoID:
		id = nil
	case NoKey:
		account = nil
	case BadTime:
		at = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	case NotJSON:
		at = nil
	}
	amount := pgtype.Numeric{Int: big.NewInt(e.Cents), Exp: -2, Valid: true}
	common := []any{id, e.Revision, account, e.Currency(), at, amount, e.Country()}
	if e.Side == stream.Left {
		return append(common, e.Merchant(), e.Method(), e.Reference(), e.Deleted), nil
	}
	return append(common, e.Level(), e.Score(), e.Reference(), e.Deleted), nil
}

// Err has nothing to report: events can't fail.
func (c *copySource) Err() error { return nil }
