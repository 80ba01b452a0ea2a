package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// caseFile is a small history with the right result after each step.
type caseFile struct {
	Name           string
	Rule           map[string]string
	OutOfOrderness string `json:"out_of_orderness"`
	Steps          []struct {
		Left, Right []json.RawMessage
		Expect      struct {
			Active, Corrections, Quarantine []string
			Duplicate, Stale, Late          *int64
		}
	}
}

// TestCasesStepByStep runs each case with one run a step.
func TestCasesStepByStep(t *testing.T) {
	t.Parallel()
	dir := sharedFile(t, "cases")
	if dir == "" {
		return
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			runCase(t, path)
		})
	}
}

func runCase(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c caseFile
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	p := newProject(t, caseConfig(&c))
	p.append(t, "left.ndjson", "")
	p.append(t, "right.ndjson", "")
	for i, step := range c.Steps {
		p.append(t, "left.ndjson", ndjson(t, step.Left))
		p.append(t, "right.ndjson", ndjson(t, step.Right))
		before := p.lines(t, "select coalesce(max(epoch), 0)::text from tally.epochs")[0]
		p.tally(t, "run", "--until-end")
		same(t, i, "active rows", p.lines(t, activeRows), step.Expect.Active)
		same(t, i, "corrections", p.lines(t, `select side || ' ' || id || '/' || revision || ' '
			|| reason from tally.corrections where epoch > $1::text::bigint`, before),
			step.Expect.Corrections)
		same(t, i, "quarantine", p.lines(t, `select side || ' ' || reason from tally.quarantined
			where epoch > $1::text::bigint`, before), step.Expect.Quarantine)
		for column, want := range map[string]*int64{
			"duplicate": step.Expect.Duplicate, "stale": step.Expect.Stale, "late": step.Expect.Late,
		} {
			if want == nil {
				continue
			}
			got := p.lines(t, `select coalesce(sum(`+column+`), 0)::text from tally.epochs
				where epoch > $1::text::bigint`, before)
			same(t, i, column, got, []string{fmt.Sprint(*want)})
		}
		same(t, i, "epochs of the step", p.lines(t, `select count(*)::text from tally.epochs
			where epoch > $1::text::bigint`, before), []string{"1"})
	}
}

func same(t *testing.T, step int, what string, got, want []string) {
	t.Helper()
	want = append([]string{}, want...)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("step %d, %s: got\n%s\nwant\n%s", step+1, what, strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
}

func caseConfig(c *caseFile) string {
	var rule []string
	for key, value := range c.Rule {
		rule = append(rule, fmt.Sprintf("%s: %s", key, value))
	}
	side := func(name string) string {
		return fmt.Sprintf(`%s: {source: {type: file, path: %s.ndjson}, id: id, revision: revision,
  key: key, time: time, deleted: deleted, out_of_orderness: %s}
`, name, name, c.OutOfOrderness)
	}
	return fmt.Sprintf("name: %s\nrule: {%s}\n%s%s", c.Name, strings.Join(rule, ", "),
		side("left"), side("right"))
}

func ndjson(t *testing.T, events []json.RawMessage) string {
	t.Helper()
	var lines strings.Builder
	for _, e := range events {
		var compact strings.Builder
		encoder := json.NewEncoder(&compact)
		if err := encoder.Encode(e); err != nil {
			t.Fatal(err)
		}
		lines.WriteString(compact.String())
	}
	return lines.String()
}
