package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/source/postgres"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// shape is how a table keeps its facts.
type shape struct {
	// id and at are types, time makes the latter of a timestamptz.
	id, at, time, format string
	weak                 bool
	// read is how many rows of the first soFar are read: of the ids concerned, the bad one's
	// included, where the server selects, and all where it cannot.
	read int64
}

const uuidZeros = "00000000-0000-0000-0000-0000000000"

func shapes() []shape {
	return []shape{
		{id: "text", at: "timestamptz", time: "%s", read: 11},
		{id: "text", at: "timestamptz", time: "%s", read: 11, weak: true},
		{
			id: "bigint", at: "bigint", time: "(extract(epoch from %s) * 1000000)::bigint",
			format: "unix_us", read: 11,
		},
		{id: "uuid", at: "numeric", time: "extract(epoch from %s)::numeric", format: "unix_s", read: 11},
		{
			id: "varchar(80)", at: "text", read: soFar, weak: true,
			time: "to_char(%s at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.USZ')",
		},
		{id: "numeric", at: "timestamptz", time: "%s", read: soFar},
	}
}

func (sh shape) String() string { return fmt.Sprintf("%s, %s, weak %v", sh.id, sh.at, sh.weak) }

// table makes a database with an empty table of the shape.
func (sh shape) table(t *testing.T) *testenv.Database {
	t.Helper()
	db := testenv.EmptyDB(t)
	run(t, db, fmt.Sprintf(`create table public.facts (
		seq bigint generated always as identity primary key,
		txid xid8 not null default pg_current_xact_id(), id %s, revision int, at %s, deleted boolean,
		key text)`, sh.id, sh.at))
	run(t, db, `create index on public.facts (txid, seq)`)
	run(t, db, `create index on public.facts (at)`)
	run(t, db, `create index on public.facts (id)`)
	return db
}

func run(t *testing.T, db *testenv.Database, sql string) {
	t.Helper()
	if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// insert is the statement that adds a fact.
func (sh shape) insert(f fact) string {
	id, at := f.id, "null"
	if sh.id == "uuid" {
		id = uuidZeros + id
	}
	if f.at != "" {
		at = fmt.Sprintf(sh.time, fmt.Sprintf("timestamptz '%s'", f.time()))
	}
	return fmt.Sprintf(`insert into public.facts (id, revision, at, deleted, key)
		values ('%s', %d, %s, %v, '%s')`, id, f.revision, at, f.deleted, f.key())
}

func (sh shape) source(t *testing.T, db *testenv.Database, page int) *postgres.Source {
	t.Helper()
	config := postgres.Config{
		Pool: db.Pool, Table: "facts", Cursor: "seq", Transaction: "txid", Mapping: factMapping(),
		Page: page,
	}
	config.Mapping.TimeFormat = sh.format
	if sh.weak {
		config.Transaction, config.Consistency = "", postgres.Weak
	}
	s, err := postgres.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// readSome reads everything once there are so many rows to read: in the sound way they may wait for
// older transactions of the server.
func (sh shape) readSome(t *testing.T, db *testenv.Database, rows int) []stream.Record {
	t.Helper()
	s := sh.source(t, db, 0)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(s.PollInterval()) {
		if all, names := readAll(t, s, ""); len(all) >= rows {
			return all
		} else if time.Now().After(deadline) {
			t.Fatalf("%s: only %v can be read", sh, names)
		}
	}
}

// between reads a new narrowed source up to a position.
func (sh shape) between(
	t *testing.T, db *testenv.Database, to string, beside ...reconcile.Source,
) (sources []reconcile.Source, names []string) {
	t.Helper()
	s := sh.source(t, db, 3)
	catchUp := catchUpTo(stream.Progress{Partition: s.Partition(), To: to})
	for _, other := range beside {
		catchUp.Partitions = append(catchUp.Partitions, stream.Progress{
			Partition: other.Partition(), To: "9", Identity: other.Identity(),
		})
	}
	sources = narrow(t, catchUp, append([]reconcile.Source{s}, beside...)...)
	_, names = readAll(t, sources[0], "")
	return sources, shorter(names)
}

func shorter(names []string) []string {
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], uuidZeros)
	}
	return names
}

func TestTableBetweenTimes(t *testing.T) {
	t.Parallel()
	for _, sh := range shapes() {
		db := sh.table(t)
		for _, f := range facts {
			run(t, db, sh.insert(f))
		}
		full := sh.readSome(t, db, len(facts))
		to := full[soFar-1].Position
		sources, got := sh.between(t, db, to)
		if !slices.Equal(got, concerned) {
			t.Errorf("%s: got %v, want %v", sh, got, concerned)
		}
		want := reconcile.Reading{
			Partition: sources[0].Partition(), Read: sh.read, Given: int64(len(concerned)), To: to,
		}
		if read := reconcile.Readings(sources); read[0] != want {
			t.Errorf("%s: readings %+v, want %+v", sh, read[0], want)
		}
		given, _ := readAll(t, sources[0], "")
		resumes(t, sources[0], full, named(given))
	}
}

// TestTablesOfOneSideBetweenTimes: an id may have its record in the range in another source.
func TestTablesOfOneSideBetweenTimes(t *testing.T) {
	t.Parallel()
	for _, sh := range shapes() {
		db := sh.table(t)
		for _, f := range facts[:soFar] {
			run(t, db, sh.insert(f))
		}
		to := sh.readSome(t, db, soFar)[soFar-1].Position
		other := &laneSource{lane: oracle.Slice{Partition: stream.Partition{Source: "other"}}}
		prefix := ""
		if sh.id == "uuid" {
			prefix = uuidZeros
		}
		for i, e := range []stream.Event{
			{ID: prefix + "16", Time: tenToEleven().From},
			{ID: prefix + "11", Time: tenToEleven().To},
			{ID: prefix + "13", Time: tenToEleven().To},
			{ID: `no "number" \`, Time: tenToEleven().To - 1},
		} {
			e.HasTime, e.Revision = true, 9
			other.lane.Records = append(other.lane.Records,
				stream.Record{Event: e, Position: fmt.Sprint(i + 1)})
		}
		other.lane.Records = append(other.lane.Records, stream.Record{Position: "9", Reason: "bad"})
		sources, got := sh.between(t, db, to, other)
		want := slices.Clone(concerned)
		want = slices.Insert(want, slices.Index(want, "15/1")+1, "16/1", "16/2")
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", sh, got, want)
		}
		_, beside := readAll(t, sources[1], "")
		if want := []string{"16/9", "11/9", `no "number" \/9`}; !slices.Equal(shorter(beside), want) {
			t.Errorf("%s: the other source gave %v, want %v", sh, beside, want)
		}
	}
}

// TestPendingRowsBetweenTimes: in the sound way what was pending comes after the end; in the weak
// way it was lost by those who read before, and is found now.
func TestPendingRowsBetweenTimes(t *testing.T) {
	t.Parallel()
	for _, sh := range shapes()[:2] {
		db := sh.table(t)
		for _, f := range facts[:soFar] {
			run(t, db, sh.insert(f))
		}
		sh.readSome(t, db, soFar)
		pending, err := db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pending.Rollback(context.WithoutCancel(t.Context())) }()
		first := fact{id: "20", revision: 1, at: "10:30:00"}
		second := fact{id: "21", revision: 1, at: "10:30:00"}
		if _, err := pending.Exec(t.Context(), sh.insert(first)); err != nil {
			t.Fatal(err)
		}
		run(t, db, sh.insert(second))
		before, after := concerned, concerned
		if sh.weak {
			before = append(slices.Clip(before), "21/1")
			after = append(slices.Clip(after), "20/1", "21/1")
		}
		full := sh.readSome(t, db, soFar)
		to := full[len(full)-1].Position
		if _, got := sh.between(t, db, to); !slices.Equal(got, before) {
			t.Errorf("%s: while a row is pending got %v, want %v", sh, got, before)
		}
		if err := pending.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, got := sh.between(t, db, to); !slices.Equal(got, after) {
			t.Errorf("%s: after it was committed got %v, want %v", sh, got, after)
		}
	}
}

// TestLongRangeOfATable has more rows than the source holds positions of.
func TestLongRangeOfATable(t *testing.T) {
	t.Parallel()
	for _, sh := range shapes()[:4] {
		db := sh.table(t)
		const rows = 400
		id, at := "n::text", fmt.Sprintf(sh.time,
			"(timestamptz '2026-03-01 10:00:00Z' + n * interval '1 minute')")
		if sh.id == "uuid" {
			id = "('" + uuidZeros + "' || lpad(n::text, 2, '0'))"
		}
		run(t, db, fmt.Sprintf(`insert into public.facts (id, revision, at, key)
			select (%s)::%s, n, %s, 'k' from (select n %% 100 as n from generate_series(1, %d) n) s`,
			id, sh.id, at, rows))
		full := sh.readSome(t, db, rows)
		_, got := sh.between(t, db, full[rows-1].Position)
		if len(got) != rows*60/100 || got[0] != shorter(named(full[:1]))[0] {
			t.Errorf("%s: got %d rows, the first %v", sh, len(got), got[:1])
		}
	}
}
