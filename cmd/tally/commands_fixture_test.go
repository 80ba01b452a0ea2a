package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/testenv"
)

var rewriteFlag = flag.Bool("rewrite", false, "write the output found into testdata/commands")

const fixtureConfig = `name: %s
database: %s
schema: tally
rule: {version: v2, join: full, before: 60s, after: 10m, lateness: 5m}
left: {source: {type: file, path: a.ndjson}, id: id, key: key, time: t}
right: {source: {type: file, path: b.ndjson}, id: id, key: key, time: t}
limits: {max_event_bytes: 64B}
`

// nearMisses are events of the right side that miss the window of L4, which is 11:45 to 11:56.
const nearMisses = `
insert into tally.buffer (generation_id, shard, side, id, revision, key, event_time, deleted,
    attributes, horizon, source, partition, position, added_epoch, row_hash)
select 2, 0, 'right', id, 1, key, at, deleted, '{}', at + interval '6 min', 'bank', 0, '1', 3,
    decode(md5(id), 'hex')
from (values
    ('N1', 'k4', '2026-01-10 11:56:00.000001Z'::timestamptz, false),
    ('N2', 'k4', '2026-01-10 11:44:30Z', false),
    ('N3', 'k4', '2026-01-10 12:30Z', true),
    ('N4', 'k44', '2026-01-10 11:57Z', false)
) as x (id, key, at, deleted)`

// leased is the lease of a shard that a worker runs and another asks for.
const leased = `update tally.shard set lease_until = 'infinity', requested_by = 'host-b:17'
where attempt_id is not null`

// fixture gives the path of a configuration of the reconciliation named in a database with the
// rows of the queries' fixture, and what more statements add.
func fixture(t *testing.T, reconciliation string, more ...string) (config string) {
	t.Helper()
	db := testenv.DB(t)
	rows, err := os.ReadFile("../../queries/testdata/fixture.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range append([]string{
		queries.Render(string(rows), db.Schema), nearMisses, leased,
	}, more...) {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	config = filepath.Join(t.TempDir(), "tally.yaml")
	text := fmt.Sprintf(fixtureConfig, reconciliation, db.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// tally runs a command line and gives what a person sees, standard error and exit code included.
func tally(t *testing.T, config string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), append([]string{"-c", config}, args...), &stdout, &stderr)
	out := stdout.String() + stderr.String()
	if code != 0 {
		out += fmt.Sprintf("exit %d\n", code)
	}
	return byClock.ReplaceAllString(out, "$1…$2")
}

// byClock finds what depends on the clock.
var byClock = regexp.MustCompile(`("(?:age|released_at)": ")[^"]+(")`)

// TestCommands runs the scripts of testdata/commands: a line "> COMMAND" and what it prints.
func TestCommands(t *testing.T) {
	t.Parallel()
	config := fixture(t, "pay")
	files, err := filepath.Glob("testdata/commands/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found strings.Builder
		for line := range strings.Lines(string(text)) {
			if command, ok := strings.CutPrefix(line, "> "); ok {
				fmt.Fprintf(&found, "%s%s\n", line, tally(t, config, strings.Fields(command)...))
			}
		}
		if *rewriteFlag {
			if err := os.WriteFile(file, []byte(found.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if found.String() != string(text) {
			t.Errorf("%s: found\n%s\nwant\n%s", file, found.String(), text)
		}
	}
}

func TestStatusForPeople(t *testing.T) {
	t.Parallel()
	found := tally(t, fixture(t, "pay"), "status")
	for _, want := range []string{
		"pay: generation 2, rule v2 (full join, window 1m before to 10m after, lateness 5m, unmatched rows " +
			"at-window-close)",
		"held_by", "right/bank/0 ", "host-a:4711", "00000000-0000-0000-0000-0000000000a7",
		"holds the watermark", "idle, does not hold it",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in\n%s", want, found)
		}
	}
	if fresh := tally(t, fixture(t, "fresh"), "status"); !strings.Contains(fresh, "-infinity") {
		t.Errorf("no -infinity in\n%s", fresh)
	}
	unknown := tally(t, fixture(t, "nobody"), "status")
	want := "reconciliation nobody has not run in schema tally yet; start it with tally run\nexit 1"
	if !strings.Contains(unknown, want) {
		t.Errorf("found\n%s\nwant %q", unknown, want)
	}
}

func TestQuarantineRelease(t *testing.T) {
	t.Parallel()
	config := fixture(t, "pay")
	repaired := filepath.Join(t.TempDir(), "repaired.json")
	write := func(text string) {
		if err := os.WriteFile(repaired, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	try := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"quarantine", "release"}, args...)
		if found := tally(t, config, args...); !strings.Contains(found, want) {
			t.Errorf("tally %v: found\n%s\nwant %q", args, found, want)
		}
	}
	write("\n")
	try("is empty\nexit 2", "0-3-1", "--repaired", repaired)
	write(strings.Repeat("x", 65))
	try("is over limits.max_event_bytes (64 bytes)\nexit 2", "0-3-1", "--repaired", repaired)
	write(strings.Repeat("x", 64) + "\r\nmore")
	try("is over limits.max_event_bytes (64 bytes)\nexit 2", "0-3-1", "--repaired", repaired)
	try("no such file or directory\nexit 2", "0-3-1", "--repaired", repaired+".no")
	for _, id := range []string{"0-3", "0-3-x", "-1-3-1", "0-3-99999999999", ""} {
		try("is no quarantine id: want shard-epoch-ordinal, like 0-17-3\nexit 2", "--", id)
	}
	try("exit 1", "0-3-9")
	write(strings.Repeat("x", 64) + "\r\n")
	try("released 0-3-1; ", "0-3-1", "--repaired", repaired)
	try("exit 1", "0-3-1")
	try("released 0-3-2; ", "0-3-2")
	found := tally(t, config, "quarantine", "--status", "released", "--side", "left",
		"--output", "json")
	if strings.Count(found, `"status": "released"`) != 2 ||
		!strings.Contains(found, `"repaired": "`+strings.Repeat("78", 64)+`"`) ||
		!strings.Contains(found, `"repaired": null`) {
		t.Errorf("after the release:\n%s", found)
	}
}
