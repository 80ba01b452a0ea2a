package testenv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrations"
)

const (
	// lockRun, with a run's number, is held by the process that owns the run's databases.
	lockRun = 0x7461
	// lockMigrate is held while migrating: roles belong to the whole server, so two processes that
	// create them at once would disturb each other.
	lockMigrate = 0x7462

	databasePrefix = "tally_test_"
)

// server hands out databases. Their names carry the number of the run, that is of this test
// process, so that processes may share the server; the run's advisory lock says that its owner is
// alive, and databases whose owner is gone are dropped by the next process.
type server struct {
	endpoint *endpoint
	base     *url.URL
	run      int32
	count    atomic.Int64

	// admin is one connection, held for the lock's sake, and shared under the mutex.
	mu    sync.Mutex
	admin *pgx.Conn

	template     memo
	transactions memo
	poolers      map[string]*pooler
}

// memo keeps the name of a database that is made once in the process.
type memo struct {
	once sync.Once
	name string
	err  error
}

func newServer(ctx context.Context, e *endpoint) (*server, error) {
	base, err := url.Parse(e.url)
	if err != nil {
		return nil, fmt.Errorf("read the server's URL: %w", err)
	}
	admin, err := pgx.Connect(ctx, e.url)
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres, %s: %w", e.what, err)
	}
	s := &server{
		endpoint: e, base: base, admin: admin, run: rand.Int32(),
		poolers: map[string]*pooler{PoolTransactions: {}, PoolSessions: {}},
	}
	if err := s.exec(ctx, "SELECT pg_advisory_lock($1, $2)", lockRun, s.run); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the run: %w", err), admin.Close(ctx))
	}
	if err := s.dropAbandoned(ctx); err != nil {
		return nil, errors.Join(err, admin.Close(ctx))
	}
	return s, nil
}

// createDatabase makes a database from the template named, with an empty search path so that code
// that forgets its schema fails.
func (s *server) createDatabase(ctx context.Context, template string) (string, error) {
	name := fmt.Sprintf("%s%08x_%d", databasePrefix, s.run, s.count.Add(1))
	create := "CREATE DATABASE " + quote(name) + " TEMPLATE " + quote(template)
	if err := s.exec(ctx, create); err != nil {
		return "", fmt.Errorf("create database %s from %s: %w", name, template, err)
	}
	if err := s.exec(ctx, "ALTER DATABASE "+quote(name)+" SET search_path = ''"); err != nil {
		return "", fmt.Errorf("empty the search path of database %s: %w", name, err)
	}
	return name, nil
}

func (s *server) dropDatabase(ctx context.Context, name string) error {
	if err := s.exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// migratedTemplate gives the name of the database that holds the migrations and nothing else.
func (s *server) migratedTemplate(context.Context) (string, error) {
	return s.template.get(func(ctx context.Context) (string, error) {
		name, err := s.createDatabase(ctx, "template0")
		if err != nil {
			return "", err
		}
		config, err := pgx.ParseConfig(s.urlOf(name))
		if err != nil {
			return "", err
		}
		if err := s.exec(ctx, "SELECT pg_advisory_lock($1, 0)", lockMigrate); err != nil {
			return "", fmt.Errorf("lock migrations: %w", err)
		}
		err = migrations.Up(ctx, config, Schema, slog.New(slog.DiscardHandler))
		unlock := s.exec(ctx, "SELECT pg_advisory_unlock($1, 0)", lockMigrate)
		return name, errors.Join(err, unlock)
	})
}

// transactionDatabase gives the name of the database that the transactions of [Tx] share.
func (s *server) transactionDatabase(ctx context.Context) (string, error) {
	template, err := s.migratedTemplate(ctx)
	if err != nil {
		return "", err
	}
	return s.transactions.get(func(ctx context.Context) (string, error) {
		return s.createDatabase(ctx, template)
	})
}

// close drops what is left of the run and stops the server.
func (s *server) close(ctx context.Context) error {
	stopped := s.stopPoolers(ctx)
	dropped := s.dropRun(ctx, s.run)
	return errors.Join(stopped, dropped, s.admin.Close(ctx), s.endpoint.stop(ctx))
}

func (s *server) dropRun(ctx context.Context, run int32) error {
	names, err := s.list(ctx, "SELECT datname FROM pg_catalog.pg_database WHERE datname ^@ $1",
		fmt.Sprintf("%s%08x_", databasePrefix, run))
	if err != nil {
		return fmt.Errorf("list the databases of a run: %w", err)
	}
	for _, name := range names {
		err = errors.Join(err, s.dropDatabase(ctx, name))
	}
	return err
}

// dropAbandoned removes the databases of test processes that were killed.
func (s *server) dropAbandoned(ctx context.Context) error {
	runs, err := s.list(ctx, `SELECT DISTINCT substr(datname, length($1) + 1, 8)
		FROM pg_catalog.pg_database WHERE datname ~ ('^' || $1 || '[0-9a-f]{8}_')`, databasePrefix)
	if err != nil {
		return fmt.Errorf("list abandoned databases: %w", err)
	}
	for _, text := range runs {
		var run int32
		if _, err := fmt.Sscanf(text, "%x", &run); err != nil {
			return fmt.Errorf("read the run in a database's name: %w", err)
		}
		if err := s.dropIfAbandoned(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) dropIfAbandoned(ctx context.Context, run int32) error {
	free, err := s.list(ctx, `SELECT 'free' WHERE pg_try_advisory_lock($1, $2)`, lockRun, run)
	if err != nil || len(free) == 0 {
		return err
	}
	err = s.dropRun(ctx, run)
	return errors.Join(err, s.exec(ctx, "SELECT pg_advisory_unlock($1, $2)", lockRun, run))
}

func (s *server) urlOf(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}

func (s *server) version() string {
	return s.admin.PgConn().ParameterStatus("server_version")
}

func (s *server) exec(ctx context.Context, sql string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.admin.Exec(ctx, sql, args...)
	return err
}

func (s *server) list(ctx context.Context, sql string, args ...any) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := s.admin.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (m *memo) get(build func(context.Context) (string, error)) (string, error) {
	m.once.Do(func() {
		// Not a test's context: what is made here serves every later test.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		m.name, m.err = build(ctx)
	})
	return m.name, m.err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
