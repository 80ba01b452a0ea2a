// Package table renders the rows a command found as an aligned table, as JSON or as CSV.
//
// All three show the same values: numbers with the digits they have, times as RFC 3339 with
// microseconds, and nothing (a blank, null, an empty cell) for a missing value.
package table

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Format is a way to write a table.
type Format string

// The formats.
const (
	Plain Format = "table"
	JSON  Format = "json"
	CSV   Format = "csv"
)

// ParseFormat reads the value of --output.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Plain, JSON, CSV:
		return f, nil
	}
	return "", fmt.Errorf("format %q: want table, json or csv", name)
}

// Table is a heading and rows of cells. A cell is nil, a string, a bool, any integer, a float, a
// json.Number, a json.RawMessage, a time.Time, a fmt.Stringer or a value pgx decodes (numeric,
// uuid, interval, infinity, bytea as hex).
type Table struct {
	// Title is written above a plain table only.
	Title   string
	Columns []string
	Rows    [][]any
	// Empty is what a plain table without rows says; the default is "no rows".
	Empty string
}

// Add appends a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// Write renders the table to w.
func (t *Table) Write(w io.Writer, format Format) error {
	switch format {
	case JSON:
		return t.writeJSON(w)
	case CSV:
		return t.writeCSV(w)
	}
	return t.writePlain(w)
}

func (t *Table) writePlain(w io.Writer) error {
	if t.Title != "" {
		if _, err := fmt.Fprintln(w, t.Title); err != nil {
			return err
		}
	}
	if len(t.Rows) == 0 {
		empty := t.Empty
		if empty == "" {
			empty = "no rows"
		}
		_, err := fmt.Fprintln(w, empty)
		return err
	}
	_, err := io.WriteString(w, t.plain())
	return err
}

func (t *Table) plain() string {
	writer := table.NewWriter()
	writer.SetStyle(table.StyleLight)
	writer.Style().Options = table.OptionsNoBordersAndSeparators
	writer.Style().Options.SeparateHeader = true
	writer.Style().Format.Header = text.FormatDefault
	writer.SuppressTrailingSpaces()
	header := make(table.Row, len(t.Columns))
	configs := make([]table.ColumnConfig, len(t.Columns))
	for i, name := range t.Columns {
		header[i] = name
		configs[i] = table.ColumnConfig{Number: i + 1}
		if t.numeric(i) {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	writer.AppendHeader(header)
	writer.SetColumnConfigs(configs)
	for _, row := range t.Rows {
		cells := make(table.Row, len(row))
		for i, v := range row {
			cells[i] = printable(cellOf(v).text)
		}
		writer.AppendRow(cells)
	}
	return writer.Render() + "\n"
}

// numeric tells whether every cell of a column that is there is a number.
func (t *Table) numeric(column int) bool {
	some := false
	for _, row := range t.Rows {
		c := cellOf(row[column])
		if c.kind == missing {
			continue
		}
		if c.kind != number {
			return false
		}
		some = true
	}
	return some
}

func (t *Table) writeJSON(w io.Writer) error {
	var out strings.Builder
	out.WriteString("[")
	for n, row := range t.Rows {
		if n > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n  {")
		for i, name := range t.Columns {
			if i > 0 {
				out.WriteString(", ")
			}
			key, err := json.Marshal(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s: %s", key, cellOf(row[i]).json())
		}
		out.WriteString("}")
	}
	if len(t.Rows) > 0 {
		out.WriteString("\n")
	}
	out.WriteString("]\n")
	_, err := io.WriteString(w, out.String())
	return err
}

func (t *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = cellOf(v).csv()
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
