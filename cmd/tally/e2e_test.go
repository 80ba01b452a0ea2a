package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/testenv"
)

// project is a configuration with a migrated database of its own.
type project struct {
	db     *testenv.Database
	dir    string
	config string
}

// newProject writes the configuration; text says everything but where the database is.
func newProject(t *testing.T, text string) *project {
	t.Helper()
	return newProjectIn(t, testenv.DB(t), text)
}

func newProjectIn(t *testing.T, db *testenv.Database, text string) *project {
	t.Helper()
	p := &project{db: db, dir: t.TempDir()}
	p.config = filepath.Join(p.dir, "tally.yaml")
	p.configure(t, text)
	return p
}

// configure replaces the configuration.
func (p *project) configure(t *testing.T, text string) {
	t.Helper()
	text = fmt.Sprintf("database: %q\nschema: %s\n%s", p.db.URL, p.db.Schema, text)
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tally runs a command line in this process; any exit code but 0 fails the test.
func (p *project) tally(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := p.execute(t, args...)
	if code != 0 {
		t.Fatalf("tally %s: exit %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// execute runs a command line in this process.
func (p *project) execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return execute1(t, append([]string{"-c", p.config, "--log-level", "warn"}, args...)...)
}

// refused runs a command line that must exit with a code and say what is wrong.
func (p *project) refused(t *testing.T, code int, says []string, args ...string) {
	t.Helper()
	got, stdout, stderr := p.execute(t, args...)
	if got != code {
		t.Fatalf("tally %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	for _, text := range says {
		if !strings.Contains(stderr, text) {
			t.Errorf("tally %s: no %q in\n%s", strings.Join(args, " "), text, stderr)
		}
	}
}

// command gives the command line as a process of its own.
func (p *project) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-c", p.config}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// lines gives the rows of a one-column query, sorted.
func (p *project) lines(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := p.db.Pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	lines := []string{}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// expect compares the rows of a one-column query.
func (p *project) expect(t *testing.T, what, sql string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := p.lines(t, sql); !slices.Equal(got, want) {
		t.Fatalf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// append adds text to a file beside the configuration.
func (p *project) append(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

const activeRows = `select status || ' ' || coalesce(left_id || '/' || left_revision, '-')
	|| ' ' || coalesce(right_id || '/' || right_revision, '-') from tally.results`

// sharedFile gives the path of a reference file, which lies beside the repository and not in it;
// empty when it is not there, which the log says.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("TALLY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Logf("NOT RUN: %v; TALLY_SHARED names the directory of the reference data", err)
		return ""
	}
	return path
}
