// Package testenv gives tests a real Postgres. One server serves a test process: the one that
// TALLY_TEST_DATABASE_URL names, else a container where a Docker engine answers, else a private
// cluster made with the Postgres binaries of the machine. TALLY_TEST_POSTGRES set to url, container
// or binaries allows that way alone. TALLY_TEST_POOLER=1 puts a PgBouncer in between. The server starts with the first test that wants it, and one
// line on standard error says which one it is; without any the tests fail.
//
// Isolation comes in two steps: [Tx] for what fits into one transaction, [DB] for what commits.
package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// Schema is the schema into which the databases of [DB] and [Tx] are migrated.
const Schema = "tally"

const (
	poolConnsMax   = 8
	cleanupTimeout = 30 * time.Second
)

// Database is a database that one test has to itself.
type Database struct {
	// URL connects to the database as a superuser, over TCP; through a pooler in transaction mode
	// where TALLY_TEST_POOLER is 1.
	URL string
	// Direct does so without a pooler.
	Direct string
	// Schema is where the migrations went. In an empty database it does not exist yet.
	Schema string
	// Pool holds a few direct connections to the database and is closed after the test.
	Pool *pgxpool.Pool
}

// Main runs the tests of a package, looks for goroutines they left behind, stops the server and
// exits. Call it from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = checkLeaks()
	}
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: stop Postgres:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// DB gives the test a migrated database of its own. It is dropped when the test ends.
func DB(t testing.TB) *Database {
	t.Helper()
	return database(t, (*server).migratedTemplate)
}

// EmptyDB gives the test a database of its own without any migration. It is dropped when the
// test ends.
func EmptyDB(t testing.TB) *Database {
	t.Helper()
	return database(t, func(*server, context.Context) (string, error) { return "template0", nil })
}

// Tx gives the test a transaction on a migrated database that it shares with the other
// transactions of the process. It is rolled back when the test ends.
func Tx(t testing.TB) pgx.Tx {
	t.Helper()
	s := shared.get(t)
	name, err := s.transactionDatabase(t.Context())
	if err != nil {
		t.Fatalf("testenv: make the database of transactions: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), s.urlOf(name))
	if err != nil {
		t.Fatalf("testenv: connect to database %s: %v", name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		// Closing rolls back, whatever state the test left the transaction in.
		_ = conn.Close(ctx)
	})
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatalf("testenv: begin in database %s: %v", name, err)
	}
	return tx
}

func database(t testing.TB, template func(*server, context.Context) (string, error)) *Database {
	t.Helper()
	s := shared.get(t)
	source, err := template(s, t.Context())
	if err != nil {
		t.Fatalf("testenv: make the template database: %v", err)
	}
	name, err := s.createDatabase(t.Context(), source)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := s.dropDatabase(ctx, name); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	pool, err := newPool(t.Context(), s.urlOf(name))
	if err != nil {
		t.Fatalf("testenv: open database %s: %v", name, err)
	}
	t.Cleanup(pool.Close)
	direct := s.urlOf(name)
	db := &Database{URL: direct, Direct: direct, Schema: Schema, Pool: pool}
	if os.Getenv(envPooler) == "1" {
		db.URL = db.Behind(t, PoolTransactions)
	}
	return db
}

func newPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolConnsMax
	return pgxpool.NewWithConfig(ctx, config)
}

// cleanupContext is for work after a test, when the test's own context is cancelled already.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cleanupTimeout)
}

// checkLeaks runs before the server stops: its end would free goroutines that hang on a
// connection, and hide them.
func checkLeaks() int {
	var ignored []goleak.Option
	if containers.Load() {
		ignored = containerLeaks
	}
	if err := goleak.Find(ignored...); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: goroutines left behind by the tests:", err)
		return 1
	}
	return 0
}
