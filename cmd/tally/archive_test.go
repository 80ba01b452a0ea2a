package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunFallsBackToTheArchive loses all state of a reconciliation: the next run goes back to the
// snapshot that the last one left in the archive.
func TestRunFallsBackToTheArchive(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "archive")
	p := newProject(t, fmt.Sprintf("%s\nepoch: {max_events: 40}\narchive: {url: 'file://%s'}\n",
		generated(t, 300), filepath.ToSlash(directory)))
	p.refused(t, exitFailed, []string{"has not run"}, "restore", "--from-archive")
	p.tally(t, "run", "--until-end")
	snapshots := archived(t, directory)
	if len(snapshots) != 1 {
		t.Fatalf("the archive has %v, want one snapshot", snapshots)
	}
	p.tally(t, "run", "--until-end", "--seal")
	want := p.digest(t)
	for _, lose := range [][]string{
		{"delete from tally.buffer", "delete from tally.source_offset", "delete from tally.match"},
		{"delete from tally.epoch", "update tally.buffer set key = key || 'x'"},
	} {
		for _, sql := range lose {
			p.exec(t, sql)
		}
		if code, _, _ := p.execute(t, "verify"); code != exitIntegrity {
			t.Errorf("verify after %v: exit %d, want %d", lose, code, exitIntegrity)
		}
		p.tally(t, "run", "--until-end", "--seal")
		if p.digest(t) != want {
			t.Errorf("after %v the results are others than before", lose)
		}
		p.tally(t, "verify", "--deep")
	}
	p.expect(t, "attempts that went back to the archive",
		"select count(*)::text from tally.attempt where restored_from = 'archive'", "2")
	if said := p.tally(t, "restore", "--from-archive"); !strings.Contains(said, "by the archive") {
		t.Errorf("restore said %q", said)
	}
	p.tally(t, "run", "--until-end", "--seal")
	if p.digest(t) != want {
		t.Error("after a restore by hand the results are others than before")
	}
	p.refused(t, exitIntegrity, []string{"has no snapshot that can be used"},
		"restore", "--from-archive", "--to-epoch", "77777")
	p.exec(t, "delete from tally.epoch")
	for _, name := range archived(t, directory) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	p.refused(t, exitIntegrity, []string{"has no snapshot that can be used", "epoch"},
		"run", "--until-end")
}

// archived gives the files of an archive.
func archived(t *testing.T, directory string) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(directory, "*", "generation-1", "shard-0", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}
