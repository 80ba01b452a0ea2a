package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tallystick/tallystick/testenv"
)

// tableConfig reads left.ndjson and a table of the same database.
const tableConfig = `name: live
rule: {version: v1, join: full, before: 10m, after: 10m, lateness: 5m}
left: {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time}
right: {source: {type: postgres, table: public.signals, cursor: seq, transaction: txid}, id: id,
  revision: rev, key: key, time: time}
epoch: {max_events: 10, max_delay: 5ms}
`

const faultSignals = `create table public.signals (
	txid xid8 not null default pg_current_xact_id(),
	seq bigint generated always as identity,
	id text not null, rev integer not null, key text not null, time timestamptz not null,
	primary key (txid, seq))`

// insertSignal inserts event n of the right side.
func (p *project) insertSignal(t *testing.T, n int) {
	t.Helper()
	p.exec(t, `insert into public.signals (id, rev, key, time)
		select 'r' || n, 1, 'k' || n, '2026-01-10 12:00Z'::timestamptz + n * interval '1 min'
		from (select $1::integer as n) as x`, n)
}

func (p *project) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := p.db.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// eventually runs a statement until it succeeds: a server that was started again takes a moment.
func (p *project) eventually(t *testing.T, sql string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := p.db.Pool.Exec(t.Context(), sql)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// wantJoinedOnce waits until n keys are matched, and checks that every record was read once.
func (p *project) wantJoinedOnce(t *testing.T, n int) {
	t.Helper()
	p.waitFor(t, "pairs", `select status || ' ' || count(*) || ' ' || count(distinct left_id)
		from tally.results group by status`, fmt.Sprintf("matched %d %d", n, n))
	p.expect(t, "records read once", "select concat_ws(' ', sum(read), sum(duplicate)) from tally.epochs",
		fmt.Sprintf("%d 0", 2*n))
}

// feed appends events of the left side from number from on, one every few milliseconds, until the
// function it returns is called; that gives the next number.
func (p *project) feed(t *testing.T, from int) func() int {
	t.Helper()
	stop, next := make(chan struct{}), from
	var group sync.WaitGroup
	group.Go(func() {
		for {
			p.append(t, "left.ndjson", event("l", next))
			next++
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	})
	return func() int { close(stop); group.Wait(); return next }
}

// TestServerStopsUnderARun stops the server in every way, with epochs in flight, and starts it
// again under a run that reads a file and a table of that server.
func TestServerStopsUnderARun(t *testing.T) {
	t.Parallel()
	server := testenv.NewPrivate(t, testenv.PrivateOptions{})
	p := newProjectIn(t, server.DB(t), tableConfig)
	p.exec(t, faultSignals)
	run := p.live(t)
	n := 0
	for range rounds(1, 20) {
		for _, stop := range []func(){
			func() { server.Stop(t, "fast") },
			func() { server.Stop(t, "immediate") },
			func() { server.Kill(t) },
		} {
			stopFeed := p.feed(t, n)
			p.waitFor(t, "the run is at work", fmt.Sprintf(
				"select 'l%d' from tally.buffer where id = 'l%[1]d'", n+3), fmt.Sprintf("l%d", n+3))
			stop()
			time.Sleep(300 * time.Millisecond)
			server.Start(t)
			p.eventually(t, "select 1")
			next := stopFeed()
			for ; n < next; n++ {
				p.insertSignal(t, n)
			}
			p.wantJoinedOnce(t, n)
		}
	}
	if code := run.stop(); code != exitDone {
		t.Fatalf("exit %d\n%s", code, run.stderr)
	}
	if !strings.Contains(run.stderr, "lost_connections=") {
		t.Errorf("the log doesn't count lost connections:\n%s", run.stderr)
	}
}

// failover is a primary that dies and a standby that had stopped receiving, under a live run.
type failover struct {
	*project
	primary, standby *testenv.Private
	run              *live
}

// newFailover commits some epochs that reach the standby and some that don't.
func newFailover(t *testing.T) *failover {
	t.Helper()
	f := &failover{primary: testenv.NewPrivate(t, testenv.PrivateOptions{})}
	db := f.primary.DB(t)
	f.standby = f.primary.Standby(t)
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + f.standby.Host
	u.RawQuery += "&target_session_attrs=read-write"
	db.URL = u.String()
	f.project = newProjectIn(t, db, fmt.Sprintf(liveConfig, "")+"lease_for: 2s\n")
	f.run = f.live(t)
	for n := range 3 {
		f.both(t, n)
	}
	f.wantJoinedOnce(t, 3)
	behind := *f.project
	behind.db = f.standby.Known(t, "tally")
	behind.wantJoinedOnce(t, 3)
	f.standby.Exec(t, "alter system set primary_conninfo = ''")
	f.standby.Exec(t, "select pg_reload_conf()")
	behind.waitFor(t, "the standby receives nothing", "select pid::text from pg_stat_wal_receiver")
	for n := range 3 {
		f.both(t, n+3)
	}
	f.wantJoinedOnce(t, 6)
	return f
}

// over kills the primary and promotes the standby.
func (f *failover) over(t *testing.T) {
	t.Helper()
	f.primary.Kill(t)
	f.standby.Promote(t)
	f.db = f.standby.Known(t, "tally")
}

func TestFailoverToALaggingStandby(t *testing.T) {
	t.Parallel()
	f := newFailover(t)
	f.over(t)
	f.both(t, 6)
	f.wantJoinedOnce(t, 7)
	if code := f.run.stop(); code != exitDone {
		t.Fatalf("exit %d\n%s", code, f.run.stderr)
	}
	for _, says := range []string{"went back to an older state", "on timeline 1", "on timeline 2"} {
		if !strings.Contains(f.run.stderr, says) {
			t.Errorf("no %q in\n%s", says, f.run.stderr)
		}
	}
}

// TestFailoverWithoutReplay has a source that no longer has what the standby had not received.
func TestFailoverWithoutReplay(t *testing.T) {
	t.Parallel()
	f := newFailover(t)
	file, err := os.OpenFile(filepath.Join(f.dir, "left.ndjson"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt([]byte(event("x", 0)), 0)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	f.over(t)
	f.append(t, "right.ndjson", event("r", 6))
	f.run.exits(t, exitPosition, "bytes 0 to 183 are missing")
}
