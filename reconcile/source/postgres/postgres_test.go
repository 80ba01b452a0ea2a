package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// soundTable is a table as the sound way wants it.
const soundTable = `create table public.risks (
	seq bigint generated always as identity primary key,
	txid xid8 not null default pg_current_xact_id(),
	id text not null, at timestamptz default '2024-01-01 00:00:00+00'
);
create index on public.risks (txid, seq);`

func sound(db *testenv.Database) Config {
	return Config{
		Side: stream.Right, Pool: db.Pool, Table: "public.risks", Cursor: "seq", Transaction: "txid",
		Mapping: record.Mapping{ID: "id", Key: []string{"id"}, Time: "at"},
	}
}

func weak(db *testenv.Database) Config {
	config := sound(db)
	config.Transaction, config.Consistency = "", Weak
	return config
}

func database(t *testing.T, statements ...string) *testenv.Database {
	t.Helper()
	db := testenv.EmptyDB(t)
	for _, sql := range statements {
		exec(t, db, sql)
	}
	return db
}

func exec(t *testing.T, db *testenv.Database, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func source(t *testing.T, config Config) *Source {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func open(t *testing.T, config Config, position, identity string) *Source {
	t.Helper()
	s := source(t, config)
	if _, err := s.Open(t.Context(), position, identity); err != nil {
		t.Fatal(err)
	}
	return s
}

// drain reads to the present end, two rows at a time.
func drain(t *testing.T, s *Source) (ids []string, position string) {
	t.Helper()
	for {
		records, atEnd, err := s.Read(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			ids = append(ids, r.Event.ID+string(r.Reason))
			position = r.Position
		}
		if atEnd {
			return ids, position
		}
	}
}

// check wants these rows and no more. They may have to wait for older transactions of the server.
func check(t *testing.T, s *Source, want ...string) (position string) {
	t.Helper()
	var all []string
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(s.PollInterval()) {
		got, at := drain(t, s)
		if all = append(all, got...); at != "" {
			position = at
		}
		if len(all) >= len(want) || time.Now().After(deadline) {
			break
		}
	}
	if strings.Join(all, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", all, want)
	}
	return position
}

// next waits for one row.
func next(t *testing.T, s *Source) stream.Record {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(s.PollInterval()) {
		records, _, err := s.Read(t.Context(), 1)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no row came: %v", err)
		}
		if len(records) == 1 {
			return records[0]
		}
	}
}

func begin(t *testing.T, db *testenv.Database, sql string) pgx.Tx {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func isError(t *testing.T, err, want error, part string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), part) {
		t.Errorf("got  %v\nwant %v with %q", err, want, part)
	}
}

func insert(id string) string {
	return fmt.Sprintf("insert into public.risks (id) values ('%s')", id)
}

// TestWritersThatCommitOutOfOrderLoseNothing has a transaction that takes its id and its sequence
// value first and commits last, subtransactions included.
func TestWritersThatCommitOutOfOrderLoseNothing(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable)
	s := open(t, sound(db), "", "")
	early := begin(t, db, insert("early"))
	late := begin(t, db, insert("late"))
	savepoint, err := early.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := savepoint.Exec(t.Context(), insert("inner")); err != nil {
		t.Fatal(err)
	}
	commit(t, savepoint)
	commit(t, late)
	exec(t, db, insert("after"))
	check(t, s)
	commit(t, early)
	position := check(t, s, "early", "inner", "late", "after")

	resumed := open(t, sound(db), "", "")
	records, _, err := resumed.Read(t.Context(), 2)
	if err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	middle := open(t, sound(db), records[1].Position, resumed.Identity())
	check(t, middle, "late", "after")
	if parts := strings.Split(position, "/"); len(parts) != 2 || parts[1] != "4" {
		t.Errorf("position %q, want txid/seq", position)
	}
}

// TestWeakModeLosesRows documents why the weak mode must be asked for by name.
func TestWeakModeLosesRows(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable)
	s := open(t, weak(db), "", "")
	early := begin(t, db, insert("early"))
	exec(t, db, insert("late"))
	check(t, s, "late")
	commit(t, early)
	exec(t, db, insert("after"))
	check(t, s, "after")
}

func TestBoundFixesThePresentEnd(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, insert("a"), insert("b"), insert("c"))
	check(t, open(t, sound(db), "", ""), "a", "b", "c")
	bySound, byWeak := open(t, sound(db), "", ""), open(t, weak(db), "", "")
	running := begin(t, db, insert("open"))
	for _, s := range []*Source{bySound, byWeak} {
		if err := s.Bound(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, running)
	exec(t, db, insert("d"))
	for _, s := range []*Source{bySound, byWeak} {
		s.Seal()
		check(t, s, "a", "b", "c")
		check(t, s)
	}
	exec(t, db, "truncate public.risks")
	empty := open(t, weak(db), "", "")
	if err := empty.Bound(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, insert("e"))
	check(t, empty)
}

// TestBoundWaitsForRowsThatAreHeldBack has a row committed behind a transaction that is still open.
func TestBoundWaitsForRowsThatAreHeldBack(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, insert("a"))
	older := begin(t, db, insert("older"))
	exec(t, db, insert("b"))
	config := sound(db)
	config.BoundWait = 20 * time.Millisecond
	err := open(t, config, "", "").Bound(t.Context())
	if err == nil || !strings.Contains(err.Error(), "backend_xid") {
		t.Errorf("Bound doesn't wait for the row: %v", err)
	}
	s := open(t, sound(db), "", "")
	bounded := make(chan error, 1)
	go func() { bounded <- s.Bound(t.Context()) }()
	time.Sleep(20 * time.Millisecond)
	commit(t, older)
	if err := <-bounded; err != nil {
		t.Fatal(err)
	}
	check(t, s, "a", "older", "b")
}

// TestCursorTypes pages through equal cursor values, microseconds included, and resumes after
// every single row.
func TestCursorTypes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ typ, values string }{
		"bigint":  {"bigint", "-5, 9007199254740993, 9007199254740993, 9223372036854775807"},
		"text":    {"text", "'', 'a/b', 'a/b', 'a%2F;,'"},
		"uuid":    {"uuid", "'00000000-0000-0000-0000-000000000001', gen_random_uuid()"},
		"numeric": {"numeric", "1.10, 1.1, 99999999999999999999.5, 'NaN'"},
		"double":  {"double precision", "0.1, 0.1, 0.30000000000000004, 'Infinity'"},
		"timestamptz": {"timestamptz", "'2024-01-01T00:00:00.000001Z', " +
			"'2024-01-01T00:00:00.000001Z', '2024-01-01T00:00:00.000002Z', 'infinity'"},
		"bytea": {"bytea", `'\x00ff', '\x00ff', '\x'`},
	} {
		for _, key := range []string{"primary key", ""} {
			t.Run(name+" "+key, func(t *testing.T) {
				t.Parallel()
				db := database(t,
					"create table public.risks (c "+test.typ+" not null, id text "+key+
						", at timestamptz default '2024-01-01Z')",
					"insert into public.risks (c, id) select v, 'id' || n from unnest(array["+
						test.values+"]::"+test.typ+"[]) with ordinality as u(v, n)")
				config := weak(db)
				config.Cursor = "c"
				everyRowOnce(t, db, config)
			})
		}
	}
}

func everyRowOnce(t *testing.T, db *testenv.Database, config Config) {
	t.Helper()
	var rows int
	err := db.Pool.QueryRow(t.Context(), "select count(*) from public.risks").Scan(&rows)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	position, identity := "", ""
	for range rows {
		s := open(t, config, position, identity)
		records, _, err := s.Read(t.Context(), 1)
		if err != nil || len(records) != 1 || records[0].Reason != "" {
			t.Fatalf("after %q: %+v, %v", position, records, err)
		}
		seen[records[0].Event.ID] = true
		position, identity = records[0].Position, s.Identity()
	}
	if len(seen) != rows {
		t.Errorf("%d of %d rows: %v", len(seen), rows, seen)
	}
	check(t, open(t, config, position, identity))
}

// TestRowsKeepTheirExactText checks values and the ways in which a row can be bad, under a
// session whose settings would change the text of times, intervals and floats.
func TestRowsKeepTheirExactText(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, `alter table public.risks
		add n numeric, add f float8, add i interval, add j jsonb, add l timestamp, add b bytea;
		do $$ begin execute format('alter database %I set timezone = ''Europe/Amsterdam''',
			current_database()); end $$;
		insert into public.risks (id, at, n, f, i, j, b) values
		('good', '1920-01-01 00:00:00.123456+00', 1.10, 0.1, '1 day', '{"b": 1.10, "a": [1]}', '\x00'),
		('forever', 'infinity', null, null, null, null, null),
		('timeless', null, null, null, null, null, null),
		('', '2024-01-01Z', null, null, null, null, null),
		('nan', '2024-01-01Z', 'NaN', null, null, null, null),
		('large', '2024-01-01Z', null, null, null, to_jsonb(repeat('x', 2000)), null);`)
	config := sound(db)
	config.Mapping.Numeric = []string{"n"}
	config.Mapping.MaxEventBytes = 1000
	config.Pool, config.URL = nil, db.URL
	s := open(t, config, "", "")
	good := next(t, s)
	want := `{"b":"\\x00","f":0.1,"i":"1 day","j":{"a":[1],"b":1.10},"l":null,"n":1.10}`
	if e := good.Event; e.Attributes != want || e.Time.String() != "1920-01-01T00:00:00.123456Z" {
		t.Errorf("%s %s %s", good.Reason, e.Attributes, e.Time)
	}
	check(t, s, "bad_time", "bad_time", "missing_id", "bad_number", "too_large")

	local := config
	local.Mapping.Time = "l"
	exec(t, db, "update public.risks set l = at")
	if r := next(t, open(t, local, "", "")); r.Reason != stream.BadTime {
		t.Errorf("a time without zone: %q %+v", r.Reason, r.Event)
	}
}

func TestNothingIsLeftInTheSession(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable, insert("a"))
	before := sessions(t, db)
	check(t, open(t, sound(db), "", ""), "a")
	if after := sessions(t, db); len(before) != 1 || len(after) != 1 || after[0] != before[0] {
		t.Errorf("sessions were %q\nand are %q", before, after)
	}
}

// sessions tells what each idle connection of the pool has set and prepared.
func sessions(t *testing.T, db *testenv.Database) (all []string) {
	t.Helper()
	for _, conn := range db.Pool.AcquireAllIdle(t.Context()) {
		defer conn.Release()
		var text string
		err := conn.QueryRow(t.Context(), `select concat(
			(select string_agg(name || '=' || setting, ' ' order by name)
				from pg_settings where source = 'session'),
			(select string_agg(statement, ' ') from pg_prepared_statements))`,
			pgx.QueryExecModeExec).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}
