package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/queries"
)

// reading is one look at the database: all its statements see the same moment and change nothing.
type reading struct {
	tx     pgx.Tx
	schema string
	config *config.Config
}

// read opens the store of the configuration and looks into it.
func (a *app) read(ctx context.Context, look func(context.Context, *reading) error) error {
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.Pool(), options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, queries.Command("session")); err != nil {
			return fmt.Errorf("begin to read: %w", err)
		}
		return look(ctx, &reading{tx: tx, schema: s.Schema(), config: c})
	})
}

// serving is the generation that the views show.
type serving struct {
	Generation                    int32
	RuleVersion, JoinKind         string
	BeforeUS, AfterUS, LatenessUS int64
	Provisional                   string
	Shards                        int32
	Since                         time.Time
}

// serving refuses a reconciliation that has never run.
func (r *reading) serving(ctx context.Context) (serving, error) {
	return servingOf(ctx, r.tx, r.schema, r.config.Name)
}

// querier runs a statement: a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func servingOf(ctx context.Context, q querier, schema, reconciliation string) (serving, error) {
	sql := queries.Render(queries.Command("serving"), schema)
	rows, err := q.Query(ctx, sql, reconciliation)
	if err != nil {
		return serving{}, fmt.Errorf("look for reconciliation %s: %w", reconciliation, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[serving])
	if err != nil {
		return serving{}, fmt.Errorf("look for reconciliation %s: %w", reconciliation, err)
	}
	if len(found) == 0 {
		return serving{}, fmt.Errorf("reconciliation %s has not run in schema %s yet; "+
			"start it with tally run", reconciliation, schema)
	}
	return found[0], nil
}

// command runs a statement of queries/command.
func (r *reading) command(ctx context.Context, name string, args ...any) (*table.Table, error) {
	t, err := r.query(ctx, queries.Render(queries.Command(name), r.schema), args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", strings.ReplaceAll(name, "_", " "), err)
	}
	return t, nil
}

func (r *reading) query(ctx context.Context, sql string, args ...any) (*table.Table, error) {
	formats := pgx.QueryResultFormats{pgx.TextFormatCode}
	rows, err := r.tx.Query(ctx, sql, append([]any{formats}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	t := &table.Table{}
	for _, f := range rows.FieldDescriptions() {
		t.Columns = append(t.Columns, f.Name)
	}
	for rows.Next() {
		cells, err := rows.Values()
		if err != nil {
			return nil, err
		}
		for i, f := range rows.FieldDescriptions() {
			// As it is written: decoding would lose the digits of large numbers.
			raw := rows.RawValues()[i]
			if raw != nil && (f.DataTypeOID == pgtype.JSONOID || f.DataTypeOID == pgtype.JSONBOID) {
				cells[i] = json.RawMessage(slices.Clone(raw))
			}
		}
		t.Add(cells...)
	}
	return t, rows.Err()
}

// show renders a table; for people its times and durations are written shorter.
func (a *app) show(t *table.Table) error {
	if a.forPeople() {
		t = humane(t)
	}
	return a.render(t)
}

func (a *app) forPeople() bool { return a.output == string(table.Plain) }

// humane gives the table with times and durations as people read them.
func humane(t *table.Table) *table.Table {
	short := *t
	short.Rows = make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		short.Rows[i] = make([]any, len(row))
		for j, cell := range row {
			short.Rows[i][j] = humaneCell(cell)
		}
	}
	return &short
}

func humaneCell(cell any) any {
	switch v := cell.(type) {
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05.999999Z")
	case pgtype.Interval:
		return interval(v)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return cell
}

// duration writes 5d2h30m where Go writes 122h30m0s.
func duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d >= day:
		return fmt.Sprintf("%dd%s", d/day, duration(d%day))
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// interval writes 323d4h7m33s. Differences of times have no months.
func interval(v pgtype.Interval) any {
	if !v.Valid {
		return nil
	}
	text := duration(time.Duration(v.Microseconds) * time.Microsecond)
	if v.Days == 0 && v.Months == 0 {
		return text
	}
	days := fmt.Sprintf("%dd", v.Days)
	if v.Months != 0 {
		days = fmt.Sprintf("%dmo%s", v.Months, days)
	}
	if v.Microseconds == 0 {
		return days
	}
	return days + text
}

// pick gives the columns named, in that order.
func pick(t *table.Table, columns ...string) *table.Table {
	picked := &table.Table{Title: t.Title, Columns: columns, Empty: t.Empty}
	for _, row := range t.Rows {
		var cells []any
		for _, name := range columns {
			cells = append(cells, row[slices.Index(t.Columns, name)])
		}
		picked.Add(cells...)
	}
	return picked
}

// cut drops the rows past limit and says so: an answer is never short in silence.
func (a *app) cut(t *table.Table, limit int) {
	if len(t.Rows) > limit {
		t.Rows = t.Rows[:limit]
		fmt.Fprintf(a.stderr, "tally: only the first %d rows are shown; see --limit\n", limit)
	}
}
