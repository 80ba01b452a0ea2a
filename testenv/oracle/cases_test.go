package oracle

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCaseFiles plays every case file in the directory named by TALLY_CASES. The scripts of
// TestScripts cover the same ground and always run.
func TestCaseFiles(t *testing.T) {
	t.Parallel()
	dir := cmp.Or(os.Getenv("TALLY_CASES"), filepath.Join("..", "..", "..", "shared", "cases"))
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		if os.Getenv("TALLY_CASES") != "" {
			t.Fatalf("TALLY_CASES=%s holds no *.json: name the directory of the case files", dir)
		}
		t.Logf("no case files in %s and TALLY_CASES is not set: only the built-in scripts ran", dir)
	}
	for _, path := range paths {
		c, err := LoadCase(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) { playCase(t, c) })
	}
}

func playCase(t *testing.T, c *Case) {
	t.Helper()
	m := NewModel(c.Rule, c.Partitions)
	for i, step := range c.Steps {
		rep := m.Step(step.Epoch)
		var corrections []string
		for _, a := range rep.Corrections {
			corrections = append(corrections, a.String())
		}
		if !slices.Equal(rep.Active, step.Active) {
			t.Errorf("%s step %d: active %q, want %q", c.Name, i+1, rep.Active, step.Active)
		}
		if !slices.Equal(corrections, step.Corrections) {
			t.Errorf("%s step %d: corrections %q, want %q", c.Name, i+1, corrections,
				step.Corrections)
		}
		if n := rep.Counts; n.Duplicate != step.Duplicate || n.Stale != step.Stale {
			t.Errorf("%s step %d: %d duplicate and %d stale, want %d and %d", c.Name, i+1,
				n.Duplicate, n.Stale, step.Duplicate, step.Stale)
		}
	}
}
