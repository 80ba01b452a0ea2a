package testenv

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed pooler.sh
var poolerScript string

// envPooler, set to 1, puts a pooler in transaction mode before every database.
const envPooler = "TALLY_TEST_POOLER"

// poolerPath is where Debian's package pgbouncer puts the program, outside a user's PATH.
const poolerPath = "/usr/sbin/pgbouncer"

// The modes of a pooler.
const (
	PoolTransactions = "transaction"
	PoolSessions     = "session"
)

// poolerINI refuses named statements, as the oldest poolers in use do. It asks the server for the
// secrets of users it doesn't know.
const poolerINI = `[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
pool_mode = %s
auth_type = %s
auth_file = users
auth_user = %s
auth_query = select usename, passwd from pg_catalog.pg_shadow where usename = $1
ignore_startup_parameters = extra_float_digits
max_client_conn = 2000
default_pool_size = 20
server_idle_timeout = 10
`

// Behind gives the URL of the database through a PgBouncer in the mode.
func (d *Database) Behind(t testing.TB, mode string) string {
	t.Helper()
	s := shared.get(t)
	address, err := s.pooled(mode, strings.TrimPrefix(mustParse(t, d.Direct).Path, "/"))
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return address
}

func mustParse(t testing.TB, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// pooler is one running PgBouncer.
type pooler struct {
	memo
	stop func(context.Context) error
}

// pooled gives the URL of a database through the pooler of the mode, starting it when need be.
func (s *server) pooled(mode, database string) (string, error) {
	p := s.poolers[mode]
	host, err := p.get(func(ctx context.Context) (host string, err error) {
		host, p.stop, err = startPooler(ctx, s.base, mode)
		return host, err
	})
	if err != nil {
		return "", fmt.Errorf("start a pooler: %w", err)
	}
	u := *s.base
	u.Host, u.Path = host, "/"+database
	return u.String(), nil
}

func (s *server) stopPoolers(ctx context.Context) (err error) {
	for _, p := range s.poolers {
		if p.stop != nil {
			err = errors.Join(err, p.stop(ctx))
		}
	}
	return err
}

func startPooler(
	ctx context.Context, base *url.URL, mode string,
) (host string, stop func(context.Context) error, err error) {
	program, err := findPooler()
	if err != nil {
		return "", nil, err
	}
	owner, err := clusterOwner()
	if err != nil {
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	dir, err := poolerDir(base, mode, port, owner)
	if err != nil {
		return "", nil, err
	}
	stop, err = runScript(ctx, poolerScript, dir, owner, program, dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	host = net.JoinHostPort("127.0.0.1", port)
	if err := waitForPooler(ctx, base, host); err != nil {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		return "", nil, errors.Join(err, fmt.Errorf("pgbouncer said: %s", said), stop(ctx))
	}
	return host, stop, nil
}

func findPooler() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	if _, err := os.Stat(poolerPath); err != nil {
		return "", fmt.Errorf("no pgbouncer in PATH and no %s: install it (on Debian: apt-get "+
			"install pgbouncer)", poolerPath)
	}
	return poolerPath, nil
}

// poolerDir makes the directory with the configuration and the secret of the server's superuser.
func poolerDir(base *url.URL, mode, port string, owner *syscall.Credential) (string, error) {
	config, err := pgx.ParseConfig(base.String())
	if err != nil {
		return "", fmt.Errorf("read the server's URL: %w", err)
	}
	authType := "scram-sha-256"
	if config.Password == "" {
		authType = "trust"
	}
	users := fmt.Sprintf("%q %q\n", config.User, config.Password)
	ini := fmt.Sprintf(poolerINI, config.Host, fmt.Sprint(config.Port), port, mode, authType,
		config.User)
	return ownedDir("tally-pooler-", owner, map[string]string{"pooler.ini": ini, "users": users})
}

func waitForPooler(ctx context.Context, base *url.URL, host string) error {
	u := *base
	u.Host = host
	for {
		conn, err := pgx.Connect(ctx, u.String())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
