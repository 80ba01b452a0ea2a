package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestRolesShareTheWork: a member of tally_worker runs a reconciliation and changes no table, a
// member of tally_reader reads the views and nothing else.
func TestRolesShareTheWork(t *testing.T) {
	t.Parallel()
	p := newProject(t, `name: roles
rule: {version: v1, join: left, after: 10m, lateness: 0s}
left: {source: {type: file, path: left.ndjson}, id: id, key: key, time: time}
right: {source: {type: file, path: right.ndjson}, id: id, key: key, time: time}
`)
	p.append(t, "left.ndjson", `{"id":"o1","key":"k","time":"2026-01-01T00:00:00Z"}`+"\n")
	p.append(t, "right.ndjson", `{"id":"i1","key":"k","time":"2026-01-01T00:01:00Z"}`+"\n")
	p.tally(t, "migrate", "up", "--roles")
	p.tally(t, "migrate", "up", "--roles") // again changes nothing

	worker := p.login(t, "tally_worker")
	p.useURL(t, worker)
	p.tally(t, "run", "--until-end", "--seal")
	refused(t, worker, "alter table tally.match add column x int")
	refused(t, worker, "drop table tally.match")

	reader := p.login(t, "tally_reader")
	p.useURL(t, reader)
	if out := p.tally(t, "query", "hot-keys"); !strings.Contains(out, "k") {
		t.Errorf("a reader's query printed %q", out)
	}
	refused(t, reader, "select match_id from tally.match")
	refused(t, reader, "delete from tally.results")
	if got := p.lines(t, activeRows); len(got) != 1 || got[0] != "matched o1/1 i1/1" {
		t.Errorf("active rows %q", got)
	}
}

// login makes a role that may log in, a member of another, and gives the URL to do so.
func (p *project) login(t *testing.T, member string) string {
	t.Helper()
	return p.loginAt(t, p.db.URL, member)
}

// loginAt is login by another way into the database.
func (p *project) loginAt(t *testing.T, address, member string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_" + member
	create := fmt.Sprintf("create role %[1]q login password 'p'; grant %[2]s to %[1]q", name, member)
	if _, err := p.db.Pool.Exec(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := p.db.Pool.Exec(ctx, fmt.Sprintf("drop role %q", name)); err != nil {
			t.Log(err)
		}
	})
	u.User = url.UserPassword(name, "p")
	return u.String()
}

// useURL makes the configuration name another way into the same database.
func (p *project) useURL(t *testing.T, url string) {
	t.Helper()
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	text = []byte(fmt.Sprintf("database: %q\n", url) + rest)
	if err := os.WriteFile(p.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err == nil {
		t.Errorf("%s was allowed", sql)
	}
}
