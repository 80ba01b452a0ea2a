package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// generated gives the configuration of a generated workload in a directory of its own.
func generated(t *testing.T, events int) string {
	t.Helper()
	dir := t.TempDir()
	code, _, stderr := execute1(t, "generate", "--dir", dir, "--events", fmt.Sprint(events),
		"--deleted", "0.05", "--revised", "0.2", "--duplicated", "0.1", "--late", "0.2",
		"--malformed", "0.05")
	if code != exitDone {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tally.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"payments", "risk_signals"} {
		path := filepath.Join(dir, name+".ndjson")
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.Replace(string(text), name+".ndjson", path, 1))
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "schema:") || strings.HasPrefix(line, "epoch:")
	})
	return strings.Join(lines, "\n")
}

func TestEpochSizeDoesNotMatter(t *testing.T) {
	t.Parallel()
	config := generated(t, 300)
	var digests []string
	for _, size := range []int{1, 7, 100} {
		p := newProject(t, fmt.Sprintf("%s\nepoch: {max_events: %d}\n", config, size))
		p.tally(t, "run", "--until-end", "--seal")
		p.expect(t, "provisional rows", "select status from tally.results_provisional")
		p.expect(t, "results that their history does not end in", `select encode(m.match_id, 'hex')
			from tally.match m left join lateral (
				select to_status from tally.match_transition x where x.match_id = m.match_id
				order by epoch desc, ordinal desc limit 1) x on true
			where x.to_status is distinct from m.status`)
		digests = append(digests, p.digest(t))
		if epochs := p.epochs(t); epochs < 300/size {
			t.Errorf("%d epochs of at most %d events", epochs, size)
		}
	}
	if digests[0] != digests[1] || digests[0] != digests[2] {
		t.Errorf("the rows depend on the size of epochs: %q", digests)
	}
}

// slowRows makes every row written to the buffer take a millisecond.
const slowRows = `
create function public.slow() returns trigger language plpgsql as $$
begin
	perform pg_sleep(0.001 * (select count(*) from fresh));
	return null;
end $$;
create trigger slow after insert on tally.buffer referencing new table as fresh
	for each statement execute function public.slow()`

func (p *project) limitStatements(t *testing.T, limit time.Duration) {
	t.Helper()
	sql := fmt.Sprintf(`do $$ begin execute format('alter database %%I set statement_timeout = %d',
		current_database()); end $$`, limit.Milliseconds())
	if _, err := p.db.Pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestStatementTimeoutMakesEpochsSmaller(t *testing.T) {
	t.Parallel()
	p := newProject(t, generated(t, 1200))
	if _, err := p.db.Pool.Exec(t.Context(), slowRows); err != nil {
		t.Fatal(err)
	}
	p.limitStatements(t, 600*time.Millisecond)
	p.tally(t, "run", "--until-end", "--seal")
	p.expect(t, "results", `select (count(*) > 500)::text from tally.results_final`, "true")
	p.expect(t, "epochs", "select (count(*) > 1)::text || (max(read) < 1200) from tally.epochs",
		"truetrue")
	p.expect(t, "outcomes", `select distinct (outcome = 'done')::text ||
		(outcome ~ 'statement timeout') from tally.attempt`, "falsetrue", "truefalse")
}

// TestEpochsGrowAgain takes the reason of the time limit away: epochs are small while it lasts, and
// then grow back to what was configured.
func TestEpochsGrowAgain(t *testing.T) {
	t.Parallel()
	const most = 64
	p := newProject(t, fmt.Sprintf(liveConfig, "")+
		fmt.Sprintf("epoch: {max_events: %d, max_delay: 1s}\n", most))
	if _, err := p.db.Pool.Exec(t.Context(), strings.Replace(slowRows, "0.001", "0.02", 1)); err != nil {
		t.Fatal(err)
	}
	p.limitStatements(t, 400*time.Millisecond)
	add := func(from, to int) {
		var left, right strings.Builder
		for n := from; n < to; n++ {
			left.WriteString(event("l", n))
			right.WriteString(event("r", n))
		}
		p.append(t, "left.ndjson", left.String())
		p.append(t, "right.ndjson", right.String())
	}
	run := p.live(t)
	add(0, 100)
	p.waitFor(t, "pairs", "select count(*)::text from tally.results", "100")
	p.expect(t, "epochs under the limit", "select (max(read) <= 20)::text from tally.epoch", "true")
	if _, err := p.db.Pool.Exec(t.Context(), "drop trigger slow on tally.buffer"); err != nil {
		t.Fatal(err)
	}
	add(100, 1000)
	p.waitFor(t, "pairs", "select count(*)::text from tally.results", "1000")
	p.expect(t, "the largest epoch", "select max(read)::text from tally.epoch", fmt.Sprint(most))
	if code := run.stop(); code != exitDone {
		t.Errorf("exit %d: %s", code, run.stderr)
	}
}

// TestRunOutlastsALock has the limit end statements that wait for a lock, of reading and writing.
func TestRunOutlastsALock(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"buffer", "shard"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, fmt.Sprintf(liveConfig, "")+"state: {cache_rows: 0}\n")
			p.both(t, 0)
			p.tally(t, "run", "--until-end")
			p.limitStatements(t, 200*time.Millisecond)
			tx, err := p.db.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "lock table tally."+table); err != nil {
				t.Fatal(err)
			}
			p.both(t, 1)
			release := time.AfterFunc(time.Second, func() { _ = tx.Rollback(t.Context()) })
			defer release.Stop()
			p.tally(t, "run", "--until-end")
			p.expect(t, "active rows", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1")
		})
	}
}

// TestLongTexts has ids, keys and attributes too long for an index entry.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, "")+"state: {cache_rows: 0}\n")
	long := func(seed uint64) string {
		var b strings.Builder
		for x := seed; b.Len() < 20_000; x = x*6364136223846793005 + 1442695040888963407 {
			fmt.Fprintf(&b, "%016x", x)
		}
		return b.String()
	}
	line := func(id, key, note string) string {
		return fmt.Sprintf(`{"id":%q,"rev":1,"key":%q,"time":"2026-01-10T12:00:00Z","note":%q}`+"\n",
			id, key, note)
	}
	p.append(t, "left.ndjson", line("l0", long(1), long(2))+line("l1", "k1", "")+
		line(long(3), "k2", ""))
	p.append(t, "right.ndjson", line("r0", long(1), "")+line("r1", "k1", ""))
	p.tally(t, "run", "--until-end")
	p.expect(t, "active rows", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1")
	p.both(t, 2)
	p.tally(t, "run", "--until-end", "--seal")
	p.expect(t, "quarantine", "select reason || ' ' || (length(raw) > 20000) from tally.quarantined",
		"too_large true")
}
