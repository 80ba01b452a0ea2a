package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tallystick/tallystick/testenv"
)

// liveConfig reads left.ndjson and right.ndjson.
const liveConfig = `name: live
rule: {version: v1, join: full, before: 10m, after: 10m, lateness: 5m}
left: {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time%s}
right: {source: {type: file, path: right.ndjson}, id: id, revision: rev, key: key, time: time}
`

// live is a run without an end.
type live struct {
	cancel context.CancelFunc
	done   chan struct{}
	code   int
	// stdout and stderr are what it has written, once it is done.
	stdout, stderr string
}

// live starts a run that goes on until it is stopped or gives up.
func (p *project) live(t *testing.T) *live {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &live{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		var stdout, stderr strings.Builder
		l.code = execute(ctx, []string{"-c", p.config, "--log-level", "warn", "run"}, &stdout, &stderr)
		l.stdout, l.stderr = stdout.String(), stderr.String()
	}()
	t.Cleanup(func() {
		cancel()
		<-l.done
		if t.Failed() {
			t.Logf("the run, exit %d, said\n%s%s", l.code, l.stdout, l.stderr)
		}
	})
	return l
}

// stop ends the run and gives its exit code.
func (l *live) stop() int {
	l.cancel()
	<-l.done
	return l.code
}

// exits waits for the run to give up by itself.
func (l *live) exits(t *testing.T, code int, says string) {
	t.Helper()
	select {
	case <-l.done:
	case <-time.After(time.Minute):
		t.Fatal("the run goes on")
	}
	if l.code != code || !strings.Contains(l.stderr, says) {
		t.Errorf("exit %d, want %d and %q\n%s", l.code, code, says, l.stderr)
	}
}

// waitFor waits until a one-column query gives exactly these rows.
func (p *project) waitFor(t *testing.T, what, sql string, want ...string) {
	t.Helper()
	slices.Sort(want)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := p.lines(t, sql)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s within a minute: got\n%s\nwant\n%s", what, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// both appends an event of one key to both files.
func (p *project) both(t *testing.T, n int) {
	t.Helper()
	for _, side := range []string{"left", "right"} {
		p.append(t, side+".ndjson", event(side[:1], n))
	}
}

// event is the line of event n of a side, with a key of its own and a minute of its own.
func event(side string, n int) string {
	at := time.Date(2026, 1, 10, 12, n, 0, 0, time.UTC).Format(time.RFC3339)
	return fmt.Sprintf(`{"id":"%s%d","rev":1,"key":"k%d","time":"%s"}`, side, n, n, at) + "\n"
}

func TestLiveRunFollowsGrowingFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	run := p.live(t)
	var want []string
	fastest := time.Hour
	for n := range 5 {
		began := time.Now()
		p.both(t, n)
		want = append(want, fmt.Sprintf("matched l%d/1 r%d/1", n, n))
		p.waitFor(t, "the appended lines are joined", activeRows, want...)
		fastest = min(fastest, time.Since(began))
	}
	// The fastest of five, since other tests may keep the machine busy.
	if fastest > time.Second {
		t.Errorf("a line appended is joined after %s at best", fastest)
	}
	line, offset := event("l", 6), "select position from tally.source_offset where side = 'left' "+
		"and source <> 'quarantine'"
	before := p.lines(t, offset)
	p.append(t, "left.ndjson", line[:20])
	p.append(t, "right.ndjson", event("r", 6))
	p.waitFor(t, "the other side goes on", "select 'r6' from tally.buffer where id = 'r6'", "r6")
	p.expect(t, "position before half a line", offset, before...)
	p.append(t, "left.ndjson", line[20:])
	want = append(want, "matched l6/1 r6/1")
	p.waitFor(t, "the line is joined once it is whole", activeRows, want...)
	if code := run.stop(); code != exitDone {
		t.Errorf("stopped with exit %d: %s", code, run.stderr)
	}
	p.expect(t, "outcome", "select outcome from tally.attempt", "stopped")
}

func TestStoppedBeforeTheFirstEpoch(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	p.append(t, "left.ndjson", "")
	p.append(t, "right.ndjson", "")
	run := p.live(t)
	p.waitFor(t, "the shard is taken", "select count(*) || '' from tally.attempt", "1")
	if code := run.stop(); code != exitDone || run.stdout != "stopped before the first epoch\n" {
		t.Errorf("exit %d, wrote %q: %s", code, run.stdout, run.stderr)
	}
	p.expect(t, "outcome", "select outcome from tally.attempt", "stopped")
}

func TestFileThatIsNotWhatItWas(t *testing.T) {
	t.Parallel()
	db := testenv.DB(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		says   []string
	}{
		"shrank": {
			func(t *testing.T, path string) { truncate(t, path, int64(len(event("l", 0)))) },
			[]string{"left.ndjson", "bytes 61 to 122 are missing", "shrank"},
		},
		"replaced": {
			func(t *testing.T, path string) {
				overwrite(t, path, event("x", 0)+event("x", 1)+event("x", 2))
			},
			[]string{"left.ndjson", "bytes 0 to 122 are missing", "replaced"},
		},
		"gone": {
			func(t *testing.T, path string) {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"left.ndjson", "bytes from 122 on are missing", "gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProjectIn(t, db, strings.Replace(fmt.Sprintf(liveConfig, ""), "live", name, 1))
			p.both(t, 0)
			p.both(t, 1)
			p.tally(t, "run", "--until-end")
			c.change(t, filepath.Join(p.dir, "left.ndjson"))
			p.refused(t, exitPosition, c.says, "run", "--until-end")
		})
	}
	t.Run("shrinks under a live run", func(t *testing.T) {
		t.Parallel()
		p := newProjectIn(t, db, strings.Replace(fmt.Sprintf(liveConfig, ""), "live", "shrinks", 1))
		run := p.live(t)
		p.both(t, 0)
		p.both(t, 1)
		p.waitFor(t, "pairs", "select count(*)::text from tally.results where "+
			"reconciliation = 'shrinks'", "2")
		truncate(t, filepath.Join(p.dir, "left.ndjson"), 61)
		run.exits(t, exitPosition, "bytes 61 to 122 are missing")
	})
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRunRefusesWhatOnlyTheUserCanSettle(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	p.both(t, 0)
	p.tally(t, "run", "--until-end")
	changed := strings.Replace(fmt.Sprintf(liveConfig, ""), "after: 10m", "after: 11m", 1)
	p.configure(t, changed)
	p.refused(t, exitUsage, []string{"v1", "changed under the same version"}, "run", "--until-end")
	p.configure(t, strings.Replace(changed, "v1", "v2", 1))
	p.refused(t, exitUsage, []string{"v1", "v2"}, "run", "--until-end")
	empty := newProjectIn(t, testenv.EmptyDB(t), fmt.Sprintf(liveConfig, ""))
	empty.refused(t, exitUsage, []string{"tally migrate"}, "run", "--until-end")
}

// TestSignalsStopCleanly signals a real process in mid-run over files that grow all the while.
func TestSignalsStopCleanly(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, fmt.Sprintf(liveConfig, "")+"epoch: {max_events: 4, max_delay: 1ms}\n")
			cmd := p.command("run")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			n := 0
			for ; p.epochs(t) < 5; n++ {
				p.both(t, n)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for p.both(t, n); !ended(t, done, &stderr); p.both(t, n) {
				n++
			}
			p.expect(t, "outcome", "select outcome from tally.attempt", "stopped")
			p.expect(t, "worker", "select coalesce(worker, 'none') from tally.shard", "none")
			p.expect(t, "epochs of shard, offsets and manifests", `select epoch - greatest(
				(select max(epoch) from tally.source_offset), (select max(epoch) from tally.epoch),
				-(select min(epoch) from tally.source_offset)) || '' from tally.shard`, "0")
			p.tally(t, "run", "--until-end", "--seal")
			p.expect(t, "every event joined once", `select status || ' ' || count(*) || ' ' ||
				count(distinct left_id) from tally.results group by status`,
				fmt.Sprintf("matched %d %d", n+1, n+1))
			p.expect(t, "records read once", `select concat_ws(' ', sum(read), sum(duplicate))
				from tally.epochs`, fmt.Sprintf("%d 0", 2*(n+1)))
		})
	}
}

// ended tells whether a process has ended; it must have ended well.
func ended(t *testing.T, done <-chan error, stderr fmt.Stringer) bool {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("the process ends with %v\n%s", err, stderr)
		}
		return true
	case <-time.After(2 * time.Millisecond):
		return false
	}
}
