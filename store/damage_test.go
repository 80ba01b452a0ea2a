package store_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// damaged is a table whose rows a hand changes: of each row, found by a condition, every column.
type damaged struct {
	table string
	// name gives, in SQL, what a row is called in findings.
	name string
	rows []string
	// insert changes the key of a copy that is put beside a row.
	insert string
	// skip gives the columns that are left alone, and why.
	skip map[string]string
}

const (
	whoHolds  = "who holds the shard: a take overwrites it, and the fence compares it"
	forPeople = "a note for people that nothing reads"
)

var damagedTables = []damaged{
	{"shard", "shard::text", []string{"true"}, "", map[string]string{
		"attempt_id": whoHolds, "worker": whoHolds, "lease_until": whoHolds, "requested_by": whoHolds,
		"purged_epoch": "it bounds how far back a restore may go; the digests say whether it can",
	}},
	{"attempt", "attempt_id::text", []string{"from_epoch = 0"}, "", map[string]string{
		"worker": forPeople, "started_at": forPeople, "ended_at": forPeople, "outcome": forPeople,
		"restored_epoch": forPeople, "restored_from": forPeople, "damage": forPeople,
	}},
	{
		"source_offset", "side || '/' || source || '/' || partition",
		[]string{"source = 'file'", "source = 'old'"},
		"partition = 7", nil,
	},
	{"epoch", "epoch::text", []string{"epoch = 8", "epoch = 5"}, "epoch = epoch + 100", nil},
	{
		"buffer", "side || ' ' || id || ', added in epoch ' || added_epoch",
		[]string{
			"id = 'l8'", "id = 'm6' and retired_epoch is not null", "id = 'l2'", "id = 'gone6'",
		},
		"id = id || 'x'",
		map[string]string{
			"spilled": "a look-up marks all rows anew before it needs it",
		},
	},
	{
		"match", "encode(match_id, 'hex')",
		[]string{"opened_epoch = 8 and kind = 'pair'", "changed_epoch = 2", "left_id = 'm3'"},
		"match_id = sha256(match_id)", nil,
	},
	{
		"match_transition", "epoch || ' ' || ordinal",
		[]string{"epoch = 8 and ordinal = 0", "epoch = 5 and ordinal = 2"},
		"ordinal = ordinal + 50", nil,
	},
	{
		"correction", "epoch || ' ' || ordinal",
		[]string{"epoch = 8 and ordinal = 0", "epoch = 3 and ordinal = 1"},
		"ordinal = ordinal + 50", nil,
	},
	{
		"quarantine", "epoch || ' ' || ordinal",
		[]string{"epoch = 8 and ordinal = 0", "epoch = 4 and ordinal = 1"},
		"ordinal = ordinal + 50",
		map[string]string{"released_at": forPeople},
	},
}

// by says how a column of a type is changed by hand.
var by = map[string]string{
	"integer": "COLUMN + 100", "bigint": "COLUMN + 100", "boolean": "not COLUMN",
	"text": "COLUMN || 'x'", "uuid": "gen_random_uuid()",
	"timestamp with time zone": "case when isfinite(COLUMN) then COLUMN + interval '1 us' " +
		"else '2024-01-01' end",
	"bytea": "set_byte(COLUMN, 0, get_byte(COLUMN, 0) # 1)", "json": "(COLUMN || ' ')::json",
}

// ofNull says what is put in the place of null.
var ofNull = map[string]string{
	"integer": "5", "bigint": "5", "text": "'x'", "timestamp with time zone": "'2024-01-01'",
	"bytea": `'\x01'`, "json": "'[]'", "uuid": "gen_random_uuid()", "boolean": "true",
}

// special are the columns of few values.
var special = map[string]string{
	"side":    "case side when 'left' then 'right' else 'left' end",
	"kind":    "case kind when 'pair' then 'left_only' when 'epoch' then 'restore' else 'pair' end",
	"verdict": "case verdict when 'agree' then 'differ' else 'agree' end",
	"status": "case status when 'matched' then 'superseded' when 'committed' then 'discarded' " +
		"when 'open' then 'discarded' when 'final' then 'provisional' else 'matched' end",
}

// shortStep: a long run strikes every blow, an ordinary one each third.
const shortStep = 3

// blow is one thing that a hand does to one row.
type blow struct {
	table damaged
	where string
	// what is column, delete or insert; set the statement.
	what, sql string
}

func blows(t *testing.T, b *bundle) (list []blow) {
	t.Helper()
	for _, table := range damagedTables {
		rows, err := b.db.Pool.Query(t.Context(), `select column_name::text, data_type::text
			from information_schema.columns where table_schema = 'tally' and table_name = $1
			order by ordinal_position`, table.table)
		if err != nil {
			t.Fatal(err)
		}
		var columns [][2]string
		for rows.Next() {
			var c [2]string
			if err := rows.Scan(&c[0], &c[1]); err != nil {
				t.Fatal(err)
			}
			columns = append(columns, c)
		}
		for _, where := range table.rows {
			list = append(list, blowsOf(t, table, where, columns)...)
		}
	}
	return list
}

func blowsOf(t *testing.T, table damaged, where string, columns [][2]string) (list []blow) {
	t.Helper()
	in := fmt.Sprintf("generation_id = $1 and shard = 0 and %s", where)
	one := fmt.Sprintf("ctid = (select min(ctid) from tally.%s where %s)", table.table, in)
	var names []string
	for _, c := range columns {
		names = append(names, c[0])
		if table.skip[c[0]] != "" {
			continue
		}
		change, is := special[c[0]]
		if !is {
			if change, is = by[c[1]]; !is {
				t.Fatalf("column %s of type %s: no change known", c[0], c[1])
			}
			change = strings.ReplaceAll(change, "COLUMN", c[0])
		}
		if c[0] == "generation_id" {
			change = "generation_id + 1000000"
		}
		list = append(list, blow{table, where, c[0], fmt.Sprintf(
			"update tally.%s set %s = coalesce(%s, %s) where %s",
			table.table, c[0], change, ofNull[c[1]], one)})
	}
	list = append(list, blow{table, where, "delete", fmt.Sprintf(
		"delete from tally.%s where %s", table.table, one)})
	if column, value, is := strings.Cut(table.insert, " = "); is {
		values := slices.Clone(names)
		values[slices.Index(names, column)] = value
		list = append(list, blow{table, where, "insert", fmt.Sprintf(
			"insert into tally.%s (%s) select %s from tally.%s where %s", table.table,
			strings.Join(names, ", "), strings.Join(values, ", "), table.table, one)})
	}
	return list
}

// TestEveryDamageIsFound changes, deletes and adds single rows in every table of a shard, each in a
// generation of its own. Each must be found and named, by verify and, where the state depends on it,
// at the start; which then goes back to a state that is right, or says that it can't.
func TestEveryDamageIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `do $$ declare c record; begin
		for c in select conrelid::regclass as t, conname from pg_constraint
			where connamespace = 'tally'::regnamespace and contype in ('c', 'f')
		loop execute format('alter table %s drop constraint %I', c.t, c.conname); end loop;
		for c in select table_name as t, column_name as n from information_schema.columns
			where table_schema = 'tally' and is_nullable = 'NO' and table_name = 'match'
				and column_name not in ('generation_id', 'shard', 'bucket', 'match_id')
		loop execute format('alter table tally.%I alter %I drop not null', c.t, c.n); end loop;
		end $$`)
	var out strings.Builder
	for _, table := range damagedTables {
		for _, column := range slices.Sorted(keysOf(table.skip)) {
			fmt.Fprintf(&out, "%-17s %-16s not tried: %s\n", table.table, column, table.skip[column])
		}
	}
	all := blows(t, b)
	counts := map[string]int{}
	for i, blow := range all {
		if os.Getenv("TALLY_LONG") == "" && i%shortStep != 0 {
			continue
		}
		line := b.strike(t, fmt.Sprint("blow ", i), blow, counts)
		fmt.Fprintf(&out, "%-17s %-16s %s\n", blow.table.table, blow.what, line)
	}
	t.Logf("%d blows, %v\n%s", len(all), counts, &out)
}

// strike does one thing to a shard and tells what came of it.
func (b *bundle) strike(t *testing.T, name string, blow blow, counts map[string]int) string {
	o := &bundle{Store: b.Store, db: b.db}
	o.generation = o.register(t, name, 1)
	h := o.take(t, b.Store)
	s := newStory()
	for epoch := range 8 {
		commit(t, h, s.next())
		if len(b.told) == epoch {
			b.told = append(b.told, o.standing(t))
		}
	}
	want := append([]string{""}, b.told...)
	if err := h.Leave(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	var row string
	err := b.db.Pool.QueryRow(t.Context(), fmt.Sprintf("select %s from tally.%s where "+
		"generation_id = $1 and shard = 0 and %s limit 1", blow.table.name, blow.table.table,
		blow.where), o.generation).Scan(&row)
	if err != nil {
		t.Fatalf("%s where %s: %v", blow.table.table, blow.where, err)
	}
	var after string
	err = b.db.Pool.QueryRow(t.Context(), blow.sql+" returning "+blow.table.name,
		o.generation).Scan(&after)
	if err != nil {
		t.Fatalf("%s: %v", blow.sql, err)
	}
	names := func(list []store.Damage) bool {
		return named(list, blow, row) || named(list, blow, after)
	}
	deep, err := b.Verify(t.Context(), o.generation, 0, true)
	if err != nil {
		t.Errorf("%s: %v", blow.sql, err)
		return "verify fails"
	}
	if len(deep.Damage) == 0 {
		t.Errorf("%s (%s): not found by verify", blow.sql, row)
	} else if !names(deep.Damage) {
		t.Errorf("%s (%s): not named by verify: %v", blow.sql, row, deep.Damage)
	}
	counts["found by verify --deep"]++
	return fmt.Sprint(o.restart(t, blow, row, want, counts, names), "; ", deep.Damage)
}

// named tells whether the row is named, or the epoch in which it is missing.
func named(list []store.Damage, blow blow, row string) bool {
	table := blow.table.table
	number := strings.Fields(row)
	return slices.ContainsFunc(list, func(d store.Damage) bool {
		if table == "attempt" && blow.what == "fencing_token" && d.Table == "shard" {
			return true // one of both is wrong
		}
		return d.Table == table && (d.Row == row || d.Row == "epoch "+number[len(number)-1] ||
			d.Row == "epoch "+number[0])
	})
}

// restart takes the shard and tells what that found.
func (b *bundle) restart(
	t *testing.T, blow blow, row string, want []string, counts map[string]int,
	names func([]store.Damage) bool,
) string {
	var state store.State
	var damage *store.DamageError
	var err error
	for _, depth := range []store.Depth{store.Quick, store.Thorough} {
		var h *store.Shard
		if h, err = b.Take(t.Context(), b.generation, 0, "host/1"); err != nil {
			break
		}
		if state, err = h.Restore(t.Context(), depth, unloaded); err != nil || len(state.Damage) > 0 {
			break
		}
		// As the loop does: what the check finds beside the work makes it begin again.
		if err := h.CheckRest(t.Context()); err == nil {
			break
		} else if depth == store.Thorough || !errors.As(err, &damage) || !names(damage.Found) {
			t.Errorf("%s (%s): beside the work: %v", blow.sql, row, err)
		}
		counts["found beside the work"]++
		if err := h.Leave(t.Context(), "damaged"); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case errors.As(err, &damage):
		counts["refused at start"]++
		if !names(damage.Found) {
			t.Errorf("%s (%s): not named at start: %v", blow.sql, row, damage.Found)
		}
		return "refused: " + err.Error()
	case err != nil:
		t.Errorf("%s (%s): at start %v", blow.sql, row, err)
		return err.Error()
	case len(state.Damage) == 0:
		counts["not found at start"]++
		if got := b.standing(t); got != want[8] && blow.table.table != "buffer" {
			t.Errorf("%s (%s): not found at start", blow.sql, row)
		}
		return "start goes on"
	}
	counts["fell back"]++
	if !names(state.Damage) {
		t.Errorf("%s (%s): not named at start: %v", blow.sql, row, state.Damage)
	}
	if b.standing(t) != want[state.RestoredTo] {
		t.Errorf("%s (%s): the state is not that of epoch %d", blow.sql, row, state.RestoredTo)
	}
	again, err := b.Verify(t.Context(), b.generation, 0, true)
	if err != nil || len(again.Damage) > 0 {
		t.Errorf("%s (%s): after going back to %d for %v verify finds %v, %v", blow.sql, row,
			state.RestoredTo, state.Damage, again.Damage, err)
	}
	return fmt.Sprintf("back to %d", state.RestoredTo)
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
