package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/store"
)

// demoTables are what the demo shows at its end.
var demoTables = []struct{ statement, title string }{
	{"demo_results", "Results (view results):"},
	{"demo_history", "How they came about (view result_history):"},
	{"demo_aside", "Set aside, never lost (views corrections and quarantined):"},
}

// report shows the results, and where to look further.
func (d *demo) report(ctx context.Context, conn *pgx.Conn, s *store.Store) error {
	for _, t := range demoTables {
		found, err := selectTable(ctx, conn, queries.Render(queries.Command(t.statement), s.Schema()))
		if err != nil {
			return fmt.Errorf("show the results: %w", err)
		}
		found.Title = t.title
		d.app.printf("\n")
		if err := d.app.render(found); err != nil {
			return err
		}
	}
	var example string
	sql := queries.Render(queries.Command("demo_example"), s.Schema())
	if err := conn.QueryRow(ctx, sql).Scan(&example); err != nil {
		return fmt.Errorf("look for an example: %w", err)
	}
	d.further(example)
	return nil
}

// further says what to try next.
func (d *demo) further(example string) {
	switch {
	case !d.keep:
		d.sayf("to look further, run it again with --keep: the database then stays until interrupted")
	case d.given:
		d.sayf("to look further (with DATABASE_URL set to the same database):")
	default:
		d.sayf("to look further:")
		d.sayf("  psql '%s'", d.url)
	}
	for sql := range strings.SplitSeq(demoLook(example), "\n") {
		d.sayf("  %s", sql)
	}
	if !d.keep {
		return
	}
	path := d.config.File()
	d.sayf("  tally explain %s -c %s", example, path)
	d.sayf("  tally query match-rate -c %s", path)
	d.sayf("  tally status -c %s", path)
}

// demoLook gives the statements to try in psql, one a line.
func demoLook(example string) string {
	text := queries.Render(queries.Command("demo_look"), demoSchema)
	_, text, _ = strings.Cut(text, "\n") // the comment that heads the file
	quoted := "'" + strings.ReplaceAll(example, "'", "''") + "'"
	return strings.TrimSpace(strings.ReplaceAll(text, ":'example'", quoted))
}

// selectTable runs a query and gives its rows as a table.
func selectTable(ctx context.Context, conn *pgx.Conn, sql string) (*table.Table, error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	t := &table.Table{}
	for _, field := range rows.FieldDescriptions() {
		t.Columns = append(t.Columns, field.Name)
	}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		t.Add(values...)
	}
	return t, rows.Err()
}
