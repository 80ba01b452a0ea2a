package postgres

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/testenv"
)

// hold takes a transaction id and keeps its transaction open.
const hold = "select pg_current_xact_id()"

// TestOtherDatabasesHoldNothingBack has transactions, open and prepared, in the table's database and
// in another of the same server, and reads as a role without rights to see what others do.
func TestOtherDatabasesHoldNothingBack(t *testing.T) {
	t.Parallel()
	server := testenv.NewPrivate(t, testenv.PrivateOptions{
		Settings: []string{"max_prepared_transactions=4"},
	})
	db, elsewhere := server.DB(t), server.Known(t, "postgres")
	exec(t, db, soundTable+`create role reader login password 'reader';
		grant usage on schema public to reader; grant select on public.risks to reader`)
	config := sound(db)
	config.Pool = as(t, db, url.UserPassword("reader", "reader"))
	s := open(t, config, "", "")

	begin(t, elsewhere, hold)
	exec(t, db, insert("a"))
	check(t, s, "a")
	prepare(t, elsewhere, hold, "there")
	exec(t, db, insert("b"))
	check(t, s, "b")
	bounded := open(t, config, "", "")
	exec(t, db, insert("c"))
	if err := bounded.Bound(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, bounded, "a", "b", "c")
	check(t, s, "c")

	older := begin(t, db, insert("d"))
	prepare(t, db, insert("e"), "here")
	exec(t, db, insert("f"))
	nothing(t, s)
	commit(t, older)
	check(t, s, "d")
	nothing(t, s)
	exec(t, db, "commit prepared 'here'")
	check(t, s, "e", "f")
}

// TestStandbyHoldsBackForAnyDatabase reads where nobody knows whose a transaction is.
func TestStandbyHoldsBackForAnyDatabase(t *testing.T) {
	t.Parallel()
	server := testenv.NewPrivate(t, testenv.PrivateOptions{})
	db, elsewhere := server.DB(t), server.Known(t, "postgres")
	exec(t, db, soundTable)
	for _, other := range []*testenv.Database{db, elsewhere} {
		exec(t, other, "create table public.held (n int)")
	}
	standby := server.Standby(t).Known(t, "tally")
	s := open(t, sound(standby), "", "")
	for _, other := range []*testenv.Database{elsewhere, db} {
		older := begin(t, other, "insert into public.held values (1)")
		exec(t, db, insert("a"))
		replayed(t, db, standby)
		nothing(t, s)
		commit(t, older)
		check(t, s, "a")
	}
}

// TestFixedEndNeedsNoHorizon has an end, found before, that an open transaction is behind.
func TestFixedEndNeedsNoHorizon(t *testing.T) {
	t.Parallel()
	db := database(t, soundTable)
	begin(t, db, hold)
	exec(t, db, insert("a"))
	s := open(t, sound(db), "", "")
	nothing(t, s)
	_, next, err := s.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.bounded, s.bound = true, position{next}
	exec(t, db, insert("b"))
	check(t, s, "a")
}

// nothing wants no row.
func nothing(t *testing.T, s *Source) {
	t.Helper()
	if got, _ := drain(t, s); len(got) > 0 {
		t.Errorf("read %v behind a transaction that still runs", got)
	}
}

func prepare(t *testing.T, db *testenv.Database, sql, name string) {
	t.Helper()
	exec(t, db, "begin; "+sql+"; prepare transaction '"+name+"'")
}

// as connects to a database as somebody else.
func as(t *testing.T, db *testenv.Database, user *url.Userinfo) *pgxpool.Pool {
	t.Helper()
	address, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = user
	pool, err := pgxpool.New(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// replayed waits until a standby has what its primary has.
func replayed(t *testing.T, primary, standby *testenv.Database) {
	t.Helper()
	var written string
	row := primary.Pool.QueryRow(t.Context(), "select pg_current_wal_lsn()::text")
	if err := row.Scan(&written); err != nil {
		t.Fatal(err)
	}
	for there := false; !there; {
		row := standby.Pool.QueryRow(t.Context(),
			"select coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", written)
		if err := row.Scan(&there); err != nil {
			t.Fatal(err)
		}
	}
}
