package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// TestRebuildRefusesADamagedCandidate: whatever is done to a candidate by hand, nobody can let it
// serve.
func TestRebuildRefusesADamagedCandidate(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	l.settled(t)
	served := l.lines(t, "select r::text from tally.results r")
	for _, c := range []struct{ name, damage, names string }{
		{
			"a result removed",
			"delete from tally.match where CANDIDATE and left_id = 'l7'", "l7",
		},
		{
			"a result removed with its transitions",
			`with gone as (delete from tally.match where CANDIDATE and left_id = 'l7' returning match_id)
			delete from tally.match_transition where CANDIDATE and match_id in (select * from gone)`, "",
		},
		{
			"a verdict changed",
			"update tally.match set verdict = 'differ' where CANDIDATE and left_id = 'l8'", "l8",
		},
		{
			"an amount changed",
			`update tally.match set differences = replace(differences::text, '33', '34')::json
			where CANDIDATE and left_id = 'l3'`, "l3",
		},
		{
			"keys swapped",
			`update tally.match set key = case key when 'k8' then 'k9' else 'k8' end
			where CANDIDATE and key in ('k8', 'k9')`, " k8 ",
		},
		{
			"half of a side removed",
			`with events as (
				delete from tally.buffer where CANDIDATE and side = 'right'
					and event_time < '2026-01-10 12:30Z')
			delete from tally.match where CANDIDATE and right_time < '2026-01-10 12:30Z'`, "",
		},
	} {
		l.tally(t, "rebuild", "start")
		l.tally(t, "rebuild", "run")
		candidate := "generation_id = (select max(generation_id) from tally.generation)"

		tag, err := l.db.Pool.Exec(t.Context(), strings.ReplaceAll(c.damage, "CANDIDATE", candidate))
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s: %s %v", c.name, tag, err)
		}
		code, stdout, stderr := l.execute(t, "rebuild", "validate", "--accept-differences",
			"--by", "me", "--why", "so")
		if code != exitRefused || !strings.Contains(stderr, "this can't be accepted") ||
			!strings.Contains(stdout, "damage: shard 0: ") || !strings.Contains(stdout, c.names) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.name, code, exitRefused, c.names, stdout, stderr)
		}
		l.prints(t, exitRefused, []string{"NOT PASSED; nobody can accept that"}, "rebuild", "promote")
		l.expect(t, c.name+": what serves", "select r::text from tally.results r", served...)
		l.tally(t, "rebuild", "abandon")
		l.prints(t, exitDone, []string{"is purged"}, "generation", "purge",
			l.lines(t, "select max(generation_id)::text from tally.generation")[0])
	}
	l.expect(t, "corrections", "select distinct status from tally.corrections", "open")
	l.verifies(t)
}

// TestRebuildOfAFileThatIsNotWhatItWas: one that ends too early can't be built from, one with other
// contents shows as differences.
func TestRebuildOfAFileThatIsNotWhatItWas(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	l.fill(t, 0, 20)
	l.close(t, 100)
	l.tally(t, "run", "--until-end")
	path := filepath.Join(l.dir, "right.ndjson")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	half := strings.Join(strings.SplitAfter(string(whole), "\n")[:8], "")
	replaced := strings.ReplaceAll(string(whole), "r1", "q1")
	for _, c := range []struct {
		text string
		code int
		says string
	}{
		{half, exitPosition, `right.ndjson/0 ends at "680"`},
		{"", exitPosition, `right.ndjson/0 ends at ""`},
		{replaced, exitRefused, "a source is not what it was"},
	} {
		overwrite(t, path, c.text)
		l.refused(t, c.code, []string{c.says}, "rebuild", "--auto")
		l.tally(t, "rebuild", "abandon")
	}
	other := strings.Replace(ledgerConfig, "path: right.ndjson", "path: other.ndjson", 1)
	l.configure(t, other)
	l.refused(t, exitUsage, []string{"right/right.ndjson/0, which the configuration does not have"},
		"rebuild", "start")
	l.configure(t, ledgerConfig)
	overwrite(t, path, string(whole))
	l.tally(t, "rebuild", "start")
	overwrite(t, path, half)
	l.refused(t, exitPosition, []string{"right.ndjson"}, "rebuild", "run")
	l.prints(t, exitRefused, []string{"NOT PASSED"}, "rebuild", "validate")
	overwrite(t, path, string(whole))
	l.tally(t, "rebuild", "run")
	l.prints(t, exitDone, []string{"0 changes"}, "rebuild", "promote")
	l.equalsOracle(t, "after the file was brought back")
}

// TestRebuildOfATableWithoutItsBeginning: what was deleted shows as differences, which somebody may
// accept, on record.
func TestRebuildOfATableWithoutItsBeginning(t *testing.T) {
	t.Parallel()
	const config = `name: cut
rule: {version: v1, join: left, before: 10m, after: 10m, lateness: 5m}
left: {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time}
right:
  {source: {type: postgres, table: public.signals, cursor: seq, transaction: txid}, id: id,
    revision: rev, key: key, time: time}
`
	p := newProject(t, config)
	if _, err := p.db.Pool.Exec(t.Context(), signalsTable); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 2, 3, 100} {
		p.append(t, "left.ndjson", event("l", n))
		p.signal(t, n)
	}
	p.tally(t, "run", "--until-end")
	served := p.lines(t, activeRows)
	cut := "delete from public.signals where id in ('r0', 'r1')"
	if _, err := p.db.Pool.Exec(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := p.execute(t, "rebuild", "--auto")
	if code != exitRefused {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, says := range []string{
		"l0/1", "r0/1", "l1/1", "only_base", "only_candidate",
		"0 differences explained, 4 not: NOT PASSED",
	} {
		if !strings.Contains(stdout, says) {
			t.Errorf("no %q in\n%s", says, stdout)
		}
	}
	p.expect(t, "what serves", activeRows, served...)
	code, stdout, stderr = p.execute(t, "rebuild", "validate", "--output", "json")
	var compared store.Comparison
	if err := json.Unmarshal([]byte(stdout), &compared); err != nil || code != exitRefused ||
		compared.Unexplained != 4 || len(compared.Differences) != 4 {
		t.Errorf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	p.refused(t, exitUsage, []string{"--by", "--why"}, "rebuild", "validate", "--accept-differences")
	p.prints(t, exitDone, []string{"accepted by ann: the table was archived"}, "rebuild", "validate",
		"--accept-differences", "--by", "ann", "--why", "the table was archived")
	p.expect(t, "on record", "select concat_ws(': ', passed, unexplained, accepted_by, accepted_why) "+
		"from tally.validation where accepted_by <> ''", "f: 4: ann: the table was archived")
	p.exec(t, "update tally.match set key = key || '!' where generation_id = 2 and left_id = 'l2'")
	p.refused(t, exitRefused, []string{"stored rows are damaged", "row_hash"}, "rebuild", "promote")
	p.expect(t, "what serves", activeRows, served...)
	p.exec(t, "update tally.match set key = rtrim(key, '!') where generation_id = 2 and left_id = 'l2'")
	p.prints(t, exitDone, []string{"generation 2 serves", "4 changes"}, "rebuild", "promote")
	p.expect(t, "what serves now", activeRows, "final l0/1 -", "final l1/1 -", "matched l2/1 r2/1",
		"matched l3/1 r3/1", "matched l100/1 r100/1")
	p.prints(t, exitDone, []string{"ann"}, "generation", "list")
}
