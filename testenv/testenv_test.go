package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestMain(m *testing.M) { Main(m) }

func TestDatabasesAreMigratedAndIsolated(t *testing.T) {
	t.Parallel()
	first, second := DB(t), DB(t)
	if _, err := first.Pool.Exec(t.Context(), "CREATE TABLE public.mark (id int)"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"public.mark": true, "tally.match": true} {
		if got := exists(t, first, name); got != want {
			t.Errorf("%s exists in the first database: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{"public.mark": false, "tally.match": true} {
		if got := exists(t, second, name); got != want {
			t.Errorf("%s exists in the second database: %v, want %v", name, got, want)
		}
	}
}

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	if db := EmptyDB(t); exists(t, db, "tally.match") {
		t.Error("an empty database holds tally.match")
	}
}

func TestSearchPathIsEmpty(t *testing.T) {
	t.Parallel()
	_, err := DB(t).Pool.Exec(t.Context(), "SELECT 1 FROM match")
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "42P01" {
		t.Errorf("a table without its schema: error %v, want 42P01 undefined_table", err)
	}
}

func TestTransactionsDoNotMeet(t *testing.T) {
	t.Parallel()
	first, second := Tx(t), Tx(t)
	if _, err := first.Exec(t.Context(), "CREATE TABLE public.mark (id int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(t.Context(), "LOCK TABLE tally.match IN SHARE MODE"); err != nil {
		t.Errorf("a migrated table in a transaction: %v", err)
	}
	var seen bool
	row := second.QueryRow(t.Context(), "SELECT to_regclass('public.mark') IS NOT NULL")
	if err := row.Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if seen {
		t.Error("one transaction sees the table of another")
	}
}

func TestCleanupDropsTheDatabase(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("user", func(t *testing.T) {
		url = DB(t).URL
	})
	_, err := pgx.Connect(t.Context(), url)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "3D000" {
		t.Errorf("connecting after the test: error %v, want 3D000 invalid_catalog_name", err)
	}
}

// A killed test process leaves its databases on a shared server; the next one drops them, but
// never those of a process that still runs.
func TestAbandonedDatabasesAreDropped(t *testing.T) {
	t.Parallel()
	alive := DB(t)
	s := shared.get(t)
	killed, err := newServer(t.Context(), s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	name, err := killed.createDatabase(t.Context(), "template0")
	if err != nil {
		t.Fatal(err)
	}
	// The connection ends and with it the lock; nothing else is cleaned up.
	if err := killed.admin.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitLock(t, s, killed.run) // until the server has noticed the end of the connection
	next, err := newServer(t.Context(), s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer next.admin.Close(t.Context())
	awaitLock(t, s, killed.run) // until another process that was quicker has dropped it
	names, err := s.list(t.Context(), "SELECT datname FROM pg_catalog.pg_database")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprintln(names), name) {
		t.Errorf("database %s of a process that is gone is still there", name)
	}
	if !exists(t, alive, "tally.match") {
		t.Error("the database of a process that runs was touched")
	}
}

func TestChoiceOfServer(t *testing.T) {
	t.Parallel()
	cases := []struct {
		forced, url string
		want        string
	}{
		{"", "postgres://u@h/d", "url"},
		{"", "", "container binaries"},
		{"container", "postgres://u@h/d", "container"},
		{"binaries", "postgres://u@h/d", "binaries"},
		{"url", "", "url"},
	}
	for _, c := range cases {
		ways, err := allowedWays(c.forced, c.url)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range ways {
			names = append(names, w.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("forced %q with URL %q: ways %q, want %q", c.forced, c.url, got, c.want)
		}
	}
	if _, err := allowedWays("sqlite", ""); err == nil {
		t.Error("an unknown way is no error")
	}
}

func TestProcessRunsUnlessSurelyGone(t *testing.T) {
	t.Parallel()
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{
		strconv.Itoa(os.Getpid()):        true,
		strconv.Itoa(ended.Process.Pid):  false,
		"":                               true,
		"0":                              true,
		"-1":                             true,
		"another form of owner: 12 & 13": true,
	}
	for pid, want := range cases {
		if got := processRuns(pid); got != want {
			t.Errorf("process %q runs: %v, want %v", pid, got, want)
		}
	}
}

func TestURLErrorsKeepThePassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"host=h password=canary", "postgres://u:canary@h:x/d"} {
		_, err := givenServer(url)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("error %v: want one without the password", err)
		}
	}
}

// The private cluster must not outlive its process, however that ends: here the pipe closes as it
// does when a process is killed.
func TestClusterEndsWithThePipe(t *testing.T) {
	t.Parallel()
	bin, err := findBinaries()
	if errors.Is(err, errAbsent) {
		return // This way is not open here, and startCluster says so with the same error.
	}
	if err != nil {
		t.Fatal(err)
	}
	owner, err := clusterOwner()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := clusterDir(owner, "secret")
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	stop, err := runScript(t.Context(), clusterScript, dir, owner, bin, dir, port)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the cluster's directory: %v, want it gone", err)
	}
}

func awaitLock(t *testing.T, s *server, run int32) {
	t.Helper()
	for _, call := range []string{"pg_advisory_lock", "pg_advisory_unlock"} {
		if err := s.exec(t.Context(), "SELECT "+call+"($1, $2)", lockRun, run); err != nil {
			t.Fatal(err)
		}
	}
}

func exists(t *testing.T, db *Database, table string) bool {
	t.Helper()
	var found bool
	row := db.Pool.QueryRow(t.Context(), "SELECT to_regclass($1) IS NOT NULL", table)
	if err := row.Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}
