package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunbookNamesTestsThatExist keeps the drills of the runbook true.
func TestRunbookNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	code, stdout, _ := execute1(t, "help", "runbook")
	if code != exitDone {
		t.Fatalf("tally help runbook exits with %d", code)
	}
	defined := map[string]bool{}
	for _, dir := range []string{".", "../../reconcile", "../../store"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllSubmatch(text, -1) {
				defined[string(m[1])] = true
			}
		}
	}
	drills := regexp.MustCompile(`Test\w+`).FindAllString(stdout, -1)
	if rows := strings.Count(stdout, "Signal"); rows < 6 || len(drills) < rows {
		t.Errorf("%d rows with %d drills", rows, len(drills))
	}
	for _, name := range drills {
		if !defined[name] {
			t.Errorf("the runbook names %s, which is no test of cmd/tally, reconcile or store", name)
		}
	}
}
