package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// growing is two files that grow: every event has its partner, but one in five is alone.
type growing struct {
	*project
	mu      sync.Mutex
	written int
}

func (g *growing) write(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.written
	if n%5 == 0 {
		g.append(t, "left.ndjson", event("l", n))
	} else {
		g.both(t, n)
	}
	g.written++
}

// start lets the files grow until the function it returns is called.
func (g *growing) start(t *testing.T) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
				g.write(t)
			}
		}
	})
	return func() { close(ended); group.Wait() }
}

// waitForNew waits until an event written from now on is in an epoch.
func (g *growing) waitForNew(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	id := fmt.Sprint("l", g.written)
	g.mu.Unlock()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var there bool
		row := g.db.Pool.QueryRow(t.Context(),
			"select exists (select from tally.buffer where id = $1)", id)
		if err := row.Scan(&there); err == nil && there {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("event %s is in no epoch within a minute: %v", id, err)
		}
	}
}

// expected joins what was written in one SQL statement.
func (g *growing) expected(t *testing.T) []string {
	t.Helper()
	h := &oracle.History{Rule: oracle.Rule{
		Join: oracle.JoinFull, Before: 10 * time.Minute, After: 10 * time.Minute,
	}}
	for side := range 2 {
		lane := oracle.Slice{Partition: stream.Partition{Side: stream.Side(side), Source: "file"}}
		for n := range g.written {
			if side == 1 && n%5 == 0 {
				continue
			}
			at := time.Date(2026, 1, 10, 12, n, 0, 0, time.UTC)
			lane.Records = append(lane.Records, stream.Record{Event: stream.Event{
				ID: fmt.Sprint("lr"[side:side+1], n), Revision: 1, Key: fmt.Sprint("k", n),
				Time: stream.MicrosOf(at), HasTime: true,
			}})
		}
		h.Lanes = append(h.Lanes, lane)
	}
	tx, err := g.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	want, err := oracle.Batch(t.Context(), tx, h, oracle.BatchSQL{
		RawEvent: queries.Torture("raw_event"), Join: queries.Torture("batch"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// TestServerPausedKilledAndCutOff does to the server under a run what happens to containers.
func TestServerPausedKilledAndCutOff(t *testing.T) {
	t.Parallel()
	server := testenv.NewBreakable(t)
	t.Logf("the server is %s", server.What)
	g := &growing{project: newProjectIn(t, server.DB(t),
		fmt.Sprintf(liveConfig, "")+"epoch: {max_events: 20, max_delay: 5ms}\n")}
	stop := g.start(t)
	run := g.live(t)
	for _, trouble := range []struct {
		name       string
		begin, end func(testing.TB)
		lasts      time.Duration
	}{
		{"paused", server.Pause, server.Resume, 3 * time.Second},
		{"killed", server.Kill, server.Start, 200 * time.Millisecond},
		{"cut off", server.Disconnect, server.Connect, 2 * time.Second},
		{"killed again", server.Kill, server.Start, time.Second},
	} {
		g.waitForNew(t)
		trouble.begin(t)
		time.Sleep(trouble.lasts)
		trouble.end(t)
		began := time.Now()
		server.WaitReady(t)
		g.waitForNew(t)
		t.Logf("%s for %s: the run goes on %s later", trouble.name, trouble.lasts,
			time.Since(began).Round(time.Millisecond))
	}
	stop()
	if code := run.stop(); code != exitDone {
		t.Fatalf("exit %d\n%s", code, run.stderr)
	}
	g.tally(t, "run", "--until-end", "--seal")
	want := g.expected(t)
	if got := g.lines(t, activeRows); !slices.Equal(got, want) {
		t.Errorf("%d active rows, want %d:\n%s\nwant\n%s", len(got), len(want),
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	records := g.written + g.written - (g.written+4)/5
	g.expect(t, "records read once", `select concat_ws(' ', sum(read), sum(duplicate))
		from tally.epochs where status = 'committed'`, fmt.Sprintf("%d 0", records))
}
