package table

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

func render(t *testing.T, tab *Table, format Format) string {
	t.Helper()
	var out strings.Builder
	if err := tab.Write(&out, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCSVGuardsAgainstFormulas(t *testing.T) {
	t.Parallel()
	for cell, want := range map[any]string{
		"=1+1": "'=1+1", "+cmd": "'+cmd", "@sum": "'@sum", "-x": "'-x", "-": "'-", "--1": "'--1",
		"\tx": "'\tx", "\rx": "\"'\rx\"", "-12.50": "-12.50", "-5": "-5", "+5": "'+5",
		"plain": "plain", "": "", json.Number("-3"): "-3", int64(-7): "-7", "a=b": "a=b",
		"-1e5": "-1e5", "-1+cmd": "'-1+cmd",
	} {
		tab := &Table{Columns: []string{"a", "b"}}
		tab.Add(cell, "x")
		if got := render(t, tab, CSV); got != "a,b\n"+want+",x\n" {
			t.Errorf("%q became %q, want %q", cell, got, want)
		}
	}
}

func TestJSONKeepsNumbersExact(t *testing.T) {
	t.Parallel()
	var numeric pgtype.Numeric
	if err := numeric.Scan("9007199254740993.10"); err != nil {
		t.Fatal(err)
	}
	tab := &Table{Columns: []string{"n", "i", "t", "null", "doc", "at", "b", "inf"}}
	tab.Add(numeric, int64(9007199254740993), "<a&b>", nil, json.RawMessage(`{"x": 1.10}`),
		time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC), true, pgtype.Infinity)
	want := `[
  {"n": 9007199254740993.10, "i": 9007199254740993, "t": "<a&b>", "null": null, ` +
		`"doc": {"x":1.10}, "at": "2026-01-02T03:04:05.000678Z", "b": true, "inf": "infinity"}
]
`
	if got := render(t, tab, JSON); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := render(t, &Table{Columns: []string{"a"}}, JSON); got != "[]\n" {
		t.Errorf("no rows: %q", got)
	}
}

func TestPlainTableShowsControlCharactersEscaped(t *testing.T) {
	t.Parallel()
	tab := &Table{Title: "T:", Columns: []string{"n", "text"}}
	tab.Add(5, "\x1b[31mred")
	tab.Add(15, "blue")
	got := render(t, tab, Plain)
	if strings.Contains(got, "\x1b") || !strings.Contains(got, `\x1b[31mred`) {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(got, "  5  ") || !strings.Contains(got, " 15  ") {
		t.Errorf("numbers aren't right-aligned:\n%s", got)
	}
	if got := render(t, &Table{Columns: []string{"a"}, Empty: "none"}, Plain); got != "none\n" {
		t.Errorf("no rows: %q", got)
	}
}
