package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestRebuildChanges: the view shows what a promotion would change, by members, of an interval only
// what it settles.
func TestRebuildChanges(t *testing.T) {
	t.Parallel()
	l2, l3, r2, r3 := leftRow(2, "k2"), leftRow(3, "k3"), rightRow(2, "k2"), rightRow(3, "k3")
	for _, c := range []struct {
		name      string
		candidate *stand
		change    string
		want      []string
	}{
		{"equal", usual(), "", nil},
		{
			"a late partner", usual().without("l3").with(pair(l3, r3)).hold(r3), "",
			[]string{"v1 added pair matched l3 r3", "v1 removed left_only final l3 -"},
		},
		{
			"an amount", usual().change("l2", func(r *stream.Result) { r.Differences = "[]" }), "",
			[]string{"v1 changed pair matched l2 r2"},
		},
		{
			"another rule", usual().without("l2").with(
				only(l2, stream.Final), only(r2, stream.Final)).again(), otherRule,
			[]string{
				"v2 added left_only final l2 -", "v2 added right_only final - r2",
				"v2 removed pair matched l2 r2",
			},
		},
		{
			"an interval", usual().without("l3", "r4", "l1"), interval,
			[]string{"v1 removed pair matched l1 r1"},
		},
		{
			"not a candidate any more", usual().without("l3"),
			"update SCHEMA.generation set status = 'abandoned' where status = 'candidate'", nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := setupContest(t, usual(), c.candidate)
			if c.change != "" {
				x.exec(t, c.change)
			}
			if got := x.changes(t); !slices.Equal(got, c.want) {
				t.Errorf("got %s\nwant %s", lines(got), lines(c.want))
			}
		})
	}
}

// changes gives the rows of the view, of the candidate alone.
func (c *contest) changes(t testing.TB) []string {
	t.Helper()
	sql := strings.ReplaceAll(`select generation_id, concat_ws(' ', rule_version, change, kind, status,
			coalesce(left_id, '-'), coalesce(right_id, '-'))
		from SCHEMA.rebuild_changes where reconciliation = 'payments' order by 2`,
		"SCHEMA", pgx.Identifier{c.db.Schema}.Sanitize())
	rows, err := c.db.Pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (text string, err error) {
		var generation int32
		err = row.Scan(&generation, &text)
		if generation != c.candidate {
			err = fmt.Errorf("a row of generation %d", generation)
		}
		return text, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
