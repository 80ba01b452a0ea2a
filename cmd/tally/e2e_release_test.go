package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const quarantineRows = `select concat_ws(' ', quarantine_id, source, reason, status)
	from tally.quarantined`

const quarantineStatus = `select concat_ws(' ', quarantine_id, reason, status)
	from tally.quarantined`

// release releases a record, as the text given where there is one.
func (p *project) release(t *testing.T, id, repaired string) {
	t.Helper()
	args := []string{"quarantine", "release", id}
	if repaired != "" {
		path := filepath.Join(p.dir, "repaired.json")
		if err := os.WriteFile(path, []byte(repaired), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--repaired", path)
	}
	p.tally(t, args...)
}

func TestReleasedRecordsAreReadAgainOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	p.append(t, "left.ndjson", strings.Replace(event("l", 0), `"rev":1,`, "", 1)+
		strings.Replace(event("l", 1), `"key"`, `"kee"`, 1))
	p.append(t, "right.ndjson", event("r", 0)+event("r", 1))
	p.tally(t, "run", "--until-end")
	p.expect(t, "quarantine", quarantineRows, "0-1-0 left.ndjson bad_revision open",
		"0-1-1 left.ndjson missing_key open")

	p.release(t, "0-1-0", event("l", 0))
	p.refused(t, exitFailed, []string{"0-1-0", "it is released already"},
		"quarantine", "release", "0-1-0")
	p.refused(t, exitFailed, []string{"0-1-7", "there is none of this name"},
		"quarantine", "release", "0-1-7")
	p.release(t, "0-1-1", strings.Replace(event("l", 1), `"time"`, `"thyme"`, 1))
	p.tally(t, "run", "--until-end")
	p.expect(t, "repaired and still bad", quarantineRows, "0-1-0 left.ndjson bad_revision resolved",
		"0-1-1 left.ndjson missing_key resolved", "0-2-0 quarantine bad_time open")
	p.expect(t, "active rows", activeRows, "matched l0/1 r0/1")

	p.tally(t, "run", "--until-end")
	p.expect(t, "nothing is read twice", "select read::text from tally.epochs", "4", "2")
	p.refused(t, exitFailed, []string{"it is resolved already"}, "quarantine", "release", "0-1-0")
	p.release(t, "0-2-0", event("l", 1))
	p.tally(t, "run", "--until-end")
	p.expect(t, "active rows", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1")
	p.expect(t, "open", "select status from tally.quarantined where status <> 'resolved'")
}

func TestReleasedUnchangedOnceTheLimitIsRaised(t *testing.T) {
	t.Parallel()
	config := fmt.Sprintf(liveConfig, "")
	p := newProject(t, config+"limits: {max_pairs_per_key: 1}\n")
	same := strings.NewReplacer(`"k1"`, `"k0"`)
	p.append(t, "left.ndjson", event("l", 0)+same.Replace(event("l", 1)))
	p.append(t, "right.ndjson", event("r", 0))
	p.tally(t, "run", "--until-end")
	p.expect(t, "quarantine", quarantineStatus, "0-1-0 hot_key open")
	p.release(t, "0-1-0", "")
	p.tally(t, "run", "--until-end")
	p.expect(t, "still hot", quarantineStatus, "0-1-0 hot_key resolved", "0-2-0 hot_key open")
	p.configure(t, config+"limits: {max_pairs_per_key: 2}\n")
	p.release(t, "0-2-0", "")
	p.tally(t, "run", "--until-end")
	p.expect(t, "all joined", quarantineStatus, "0-1-0 hot_key resolved", "0-2-0 hot_key resolved")
	p.expect(t, "pairs", "select count(*)::text from tally.results where kind = 'pair'", "2")
}

func TestLiveRunTakesReleasedRecords(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	p.append(t, "left.ndjson", strings.Replace(event("l", 0), `"rev":1,`, "", 1))
	p.append(t, "right.ndjson", event("r", 0))
	run := p.live(t)
	p.waitFor(t, "quarantined", quarantineStatus, "0-1-0 bad_revision open")
	p.release(t, "0-1-0", event("l", 0))
	p.waitFor(t, "resolved", quarantineStatus, "0-1-0 bad_revision resolved")
	if code := run.stop(); code != exitDone {
		t.Fatalf("exit %d: %s", code, run.stderr)
	}
	p.expect(t, "active rows", activeRows, "matched l0/1 r0/1")
	p.tally(t, "run", "--until-end", "--seal")
	p.expect(t, "records read once", "select sum(read)::text from tally.epochs", "3")
}
