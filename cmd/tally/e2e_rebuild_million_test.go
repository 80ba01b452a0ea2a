package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	// lonely is every how many left events the right one comes too late.
	lonely = 10
	// watched is how many of them the reader looks at.
	watched = 50
	// liveEvery and livePairs make 2,000 events a second.
	liveEvery, livePairs = 10 * time.Millisecond, 10
)

// many is two files of events that meet in pairs, a tenth of a second apart.
type many struct {
	*project
	mu    sync.Mutex
	pairs int
}

func (m *many) line(side string, n int) string {
	at := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * 100 * time.Millisecond)
	return fmt.Sprintf(`{"id":"%s%d","rev":1,"key":"k%d","time":"%s"}`, side[:1], n, n,
		at.Format(time.RFC3339Nano)) + "\n"
}

// write appends pairs up to a number. With gaps the right event of some is left out.
func (m *many) write(t *testing.T, to int, gaps bool) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, side := range []string{"left", "right"} {
		f, err := os.OpenFile(filepath.Join(m.dir, side+".ndjson"),
			os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		w := bufio.NewWriterSize(f, 1<<20)
		for n := m.pairs; n < to; n++ {
			if !gaps || side == "left" || n%lonely != 0 {
				_, _ = w.WriteString(m.line(side, n)) // Flush gives the error
			}
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	m.pairs = to
}

// TestRebuildBesideLiveWork rebuilds while events come in at 2,000 a second. A reader sees of the
// corrected results the old ones or the new, and does not wait where they change.
func TestRebuildBesideLiveWork(t *testing.T) {
	t.Parallel()
	pairs, slowest := 2_000, time.Second // other tests may keep the machine busy
	if os.Getenv(long) != "" {
		pairs, slowest = 500_000, 100*time.Millisecond
	}
	m := &many{project: newProject(t, `name: many
rule: {version: v1, join: full, before: 2s, after: 2s, lateness: 1s}
left: {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time}
right: {source: {type: file, path: right.ndjson}, id: id, revision: rev, key: key, time: time}
`)}
	m.write(t, pairs, true)
	m.tally(t, "run", "--until-end")
	for n := 0; n < pairs/2; n += lonely {
		m.append(t, "right.ndjson", m.line("right", n))
	}
	m.tally(t, "run", "--until-end")
	late := pairs / 2 / lonely
	m.expect(t, "corrections", "select count(*)::text from tally.corrections where status = 'open'",
		fmt.Sprint(late))

	run := m.live(t)
	stopWriting := m.keepWriting(t)
	reader := m.look(t)
	began := time.Now()
	m.tally(t, "rebuild", "--auto")
	took := time.Since(began)
	time.Sleep(time.Second)
	gap, reads := reader()
	stopWriting()
	t.Logf("rebuilt %d events in %s beside live work; %d reads, %s from the last of the old results to "+
		"the first of the new", 2*pairs, took.Round(time.Millisecond), reads, gap)
	if gap > slowest {
		t.Errorf("a reader waited %s, want at most %s", gap, slowest)
	}
	unpaired := (pairs - pairs/2 + lonely - 1) / lonely
	m.waitFor(t, "all pairs are there", "select count(*)::text from tally.results where kind = 'pair'",
		fmt.Sprint(m.pairs-unpaired))
	if code := run.stop(); code != exitDone {
		t.Fatalf("exit %d\n%s", code, run.stderr)
	}
	m.expect(t, "corrections", `select status || ' ' || coalesce(resolved_by, 0) || ' ' || count(*)
		from tally.corrections group by status, resolved_by`, fmt.Sprint("resolved 2 ", late))
}

// keepWriting appends whole pairs until the function it returns is called.
func (m *many) keepWriting(t *testing.T) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticks := time.NewTicker(liveEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticks.C:
				m.write(t, m.pairs+livePairs, false)
			}
		}
	})
	return func() { close(ended); group.Wait() }
}

// look reads the corrected results over and over. The function it returns ends that, and gives the
// time from the last answer with the old ones to the first with the new, and how many answers there
// were.
func (m *many) look(t *testing.T) (stop func() (time.Duration, int)) {
	t.Helper()
	ids := make([]string, watched)
	for i := range ids {
		ids[i] = fmt.Sprint("l", i*lonely)
	}
	ended := make(chan struct{})
	var group sync.WaitGroup
	var gap time.Duration
	reads, switched := 0, false
	group.Go(func() {
		last := time.Now()
		for {
			select {
			case <-ended:
				return
			default:
			}
			var alone, together int
			err := m.db.Pool.QueryRow(t.Context(), `select
				count(*) filter (where kind = 'left_only'), count(*) filter (where kind = 'pair')
				from tally.results where left_id = any($1)`, ids).Scan(&alone, &together)
			if err != nil {
				t.Error(err)
				return
			}
			before, after := alone == watched && together == 0, alone == 0 && together == watched
			if !before && !after {
				t.Errorf("a reader sees %d alone and %d in pairs", alone, together)
				return
			}
			if after && !switched {
				gap, switched = time.Since(last), true
			}
			last = time.Now()
			reads++
		}
	})
	return func() (time.Duration, int) {
		close(ended)
		group.Wait()
		if !switched {
			t.Error("the reader never saw the new results")
		}
		return gap, reads
	}
}
