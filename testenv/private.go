package testenv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/migrations"
)

// serverTimeout bounds how long a private server may take to start, to stop or to catch up.
const serverTimeout = time.Minute

// Private is a server that one test has to itself, to stop, kill and spoil. It is made with the
// Postgres binaries of the machine, whatever the other tests run on.
type Private struct {
	// URL connects to the database postgres as a superuser.
	URL string
	// Host is where it listens.
	Host string

	bin, dir string
	password string
	owner    *syscall.Credential
}

// PrivateOptions say what is special about a private server.
type PrivateOptions struct {
	// Settings are lines of postgresql.conf.
	Settings []string
	// Initdb are more arguments to initdb.
	Initdb []string
	// Prelude holds shell commands that run before the server starts, for its environment.
	Prelude string
}

// NewPrivate starts a server that stops when the test ends.
func NewPrivate(t testing.TB, options PrivateOptions) *Private {
	t.Helper()
	p := &Private{password: "private"}
	return p.start(t, options, map[string]string{
		"secret":  p.password + "\n",
		"options": strings.Join(options.Initdb, " "),
	})
}

// Standby starts a streaming standby of the server.
func (p *Private) Standby(t testing.TB, settings ...string) *Private {
	t.Helper()
	primary := fmt.Sprintf("%s&application_name=standby", p.URL)
	s := &Private{password: p.password}
	return s.start(t, PrivateOptions{Settings: settings}, map[string]string{"primary": primary})
}

func (p *Private) start(
	t testing.TB, options PrivateOptions, files map[string]string,
) *Private {
	t.Helper()
	var err error
	if p.bin, err = findBinaries(); err != nil {
		t.Fatalf("testenv: a private server: %v; on Debian: apt-get install postgresql", err)
	}
	if p.owner, err = clusterOwner(); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	if options.Prelude != "" {
		files["prelude"] = options.Prelude
	}
	if p.dir, err = ownedDir("tally-private-", p.owner, files); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	p.Host = net.JoinHostPort("127.0.0.1", port)
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", p.password), Host: p.Host,
		Path: "/postgres", RawQuery: "sslmode=disable",
	}
	p.URL = address.String()
	ctx, cancel := context.WithTimeout(t.Context(), serverTimeout)
	defer cancel()
	settings := append([]string{"fsync=off", "max_connections=40"}, options.Settings...)
	stop, err := runScript(ctx, clusterScript, p.dir, p.owner,
		append([]string{p.bin, p.dir, port}, settings...)...)
	if err != nil {
		_ = os.RemoveAll(p.dir)
		t.Fatalf("testenv: start a private server: %v", err)
	}
	// The script fails to stop what the test has stopped already.
	t.Cleanup(func() { _ = stop(context.Background()) })
	return p
}

// DB gives a migrated database on the server. It goes with the server.
func (p *Private) DB(t testing.TB) *Database {
	t.Helper()
	const name = "tally"
	p.Exec(t, "create database "+name+" template template0")
	p.Exec(t, "alter database "+name+" set search_path = ''")
	db := p.Known(t, name)
	config, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	discard := slog.New(slog.DiscardHandler)
	if err := migrations.Up(t.Context(), config, Schema, discard); err != nil {
		t.Fatalf("testenv: migrate a private database: %v", err)
	}
	return db
}

// Known gives a database that is there already.
func (p *Private) Known(t testing.TB, name string) *Database {
	t.Helper()
	address := strings.Replace(p.URL, "/postgres?", "/"+name+"?", 1)
	pool, err := newPool(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &Database{URL: address, Direct: address, Schema: Schema, Pool: pool}
}

// Exec runs a statement in the database postgres.
func (p *Private) Exec(t testing.TB, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), sql)
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the server; mode is fast or immediate.
func (p *Private) Stop(t testing.TB, mode string) {
	t.Helper()
	p.control(t, "stop", "--mode="+mode)
}

// Promote makes a standby a primary.
func (p *Private) Promote(t testing.TB) {
	t.Helper()
	p.control(t, "promote")
}

// Kill kills the server as a crash would, and waits until all of it is gone.
func (p *Private) Kill(t testing.TB) {
	t.Helper()
	pid := p.PID(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(serverTimeout); processRuns(strconv.Itoa(pid)); {
		if time.Now().After(deadline) {
			t.Fatalf("testenv: process %d outlives SIGKILL", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Start starts it again. What is left of a killed server may still hold its memory for a moment.
func (p *Private) Start(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(serverTimeout); ; time.Sleep(20 * time.Millisecond) {
		out, err := p.tryControl("start", "-l", "log")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("testenv: start the server again: %v\n%s", err, out)
		}
	}
}

// PID gives the process of the server.
func (p *Private) PID(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// Run runs a program as the user that the server runs as and gives what it printed.
func (p *Private) Run(t testing.TB, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("testenv: %s %v: %v\n%s", name, arguments, err, out)
	}
	return string(out)
}

func (p *Private) control(t testing.TB, arguments ...string) {
	t.Helper()
	if out, err := p.tryControl(arguments...); err != nil {
		t.Fatalf("testenv: pg_ctl %v: %v\n%s", arguments, err, out)
	}
}

func (p *Private) tryControl(arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	arguments = append([]string{"-D", "data", "--wait"}, arguments...)
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "pg_ctl"), arguments...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.owner}
	// The server would keep a pipe open for as long as it runs.
	out, err := os.CreateTemp("", "tally-control-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, readErr := os.ReadFile(out.Name())
	return said, errors.Join(err, readErr)
}
