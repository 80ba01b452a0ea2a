package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/testenv"
)

// setting changes a setting of new sessions in the test's database, and ends the worker's sessions.
func (p *project) setting(t *testing.T, setting string) {
	t.Helper()
	p.exec(t, fmt.Sprintf(`do $$ begin execute format('alter database %%I set %s',
		current_database()); end $$`, strings.ReplaceAll(setting, "'", "''")))
	p.endSessions(t)
}

// endSessions ends the sessions of the worker, as an operator would, and gives how many there were.
func (p *project) endSessions(t *testing.T) (n int) {
	t.Helper()
	row := p.db.Pool.QueryRow(t.Context(), `select count(pg_terminate_backend(pid))
		from pg_stat_activity where datname = current_database() and application_name = 'tallystick'`)
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantStopped stops the run, which must have said all this.
func (l *live) wantStopped(t *testing.T, says ...string) {
	t.Helper()
	if code := l.stop(); code != exitDone {
		t.Fatalf("exit %d\n%s", code, l.stderr)
	}
	for _, text := range says {
		if !strings.Contains(l.stderr, text) {
			t.Errorf("no %q in\n%s", text, l.stderr)
		}
	}
}

// aside runs a statement in a transaction of its own, and gives what ends that.
func (p *project) aside(t *testing.T, sql string) (end func()) {
	t.Helper()
	tx, err := p.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		if err := tx.Rollback(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return end
}

// TestSessionsEndUnderARun ends the worker's sessions at any moment.
func TestSessionsEndUnderARun(t *testing.T) {
	t.Parallel()
	p := newProject(t, tableConfig)
	p.exec(t, faultSignals)
	run := p.live(t)
	stopFeed := p.feed(t, 0)
	n := 0
	for range rounds(12, 1000) {
		n++
		p.insertSignal(t, n-1)
		p.waitFor(t, "the run goes on", fmt.Sprintf(
			"select distinct 'goes on' from tally.buffer where id = 'r%d'", n-1), "goes on")
		time.Sleep(rand.N(20 * time.Millisecond))
		p.endSessions(t)
	}
	for next := stopFeed(); n < next; n++ {
		p.insertSignal(t, n)
	}
	p.wantJoinedOnce(t, n)
	run.wantStopped(t, "lost_connections=")
}

// TestConflicts has other transactions be in the way of epochs in every way.
func TestConflicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		// first is done by a transaction before an epoch, then what that does while the epoch waits.
		first, then string
	}{
		"serialization": {
			"default_transaction_isolation = 'repeatable read'",
			"update tally.shard set watermark = watermark", "commit",
		},
		"lock timeout": {"lock_timeout = '30ms'", "lock table tally.shard", "select pg_sleep(3)"},
		// The epoch waits for longer than deadlock_timeout when the other joins the circle, so it is
		// the other that finds it, if it looks at once; it does not, and the epoch looks again.
		"deadlock": {
			"deadlock_timeout = '100ms'", "lock table tally.source_offset in exclusive mode",
			"set local deadlock_timeout = '1min'; set local lock_timeout = '1min'; " +
				"lock table tally.shard in share mode",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, fmt.Sprintf(liveConfig, ""))
			run := p.live(t)
			p.both(t, 0)
			p.wantJoinedOnce(t, 1)
			p.setting(t, c.settings)
			conn, err := pgx.Connect(t.Context(), p.db.Direct)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
			for _, sql := range []string{"begin", c.first} {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			p.both(t, 1)
			if name != "lock timeout" {
				p.waitFor(t, "the epoch waits", `select distinct 'waits' from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'
						and query like '-- Moves %'`, "waits")
			}
			_, err = conn.Exec(t.Context(), c.then)
			if err := errors.Join(err, conn.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			p.wantJoinedOnce(t, 2)
			run.wantStopped(t, "another transaction was in the way", "lost_connections=")
			if strings.Contains(run.stderr, "conflicts=0") {
				t.Errorf("the conflict isn't counted:\n%s", run.stderr)
			}
		})
	}
}

// TestNoConnectionToSpare takes the worker's connections away and lets it have none for a while.
func TestNoConnectionToSpare(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	p.tally(t, "migrate", "up", "--roles")
	p.useURL(t, p.loginAt(t, p.db.Direct, "tally_worker"))
	run := p.live(t)
	p.both(t, 0)
	p.wantJoinedOnce(t, 1)
	limit := func(n int) {
		p.exec(t, fmt.Sprintf(`do $$ begin execute format('alter role %%I connection limit %d',
			current_database() || '_tally_worker'); end $$`, n))
	}
	limit(0)
	p.endSessions(t)
	p.both(t, 1)
	time.Sleep(500 * time.Millisecond)
	p.expect(t, "epochs without a connection", "select max(epoch)::text from tally.epoch",
		p.lines(t, "select epoch::text from tally.shard")...)
	limit(-1)
	p.wantJoinedOnce(t, 2)
	run.wantStopped(t, "no connection to spare", "SQLSTATE 53300")
}

// TestCommitWithoutItsStandby waits for a standby that is not there. The statement limit does not
// end the wait; an operator does, and the epoch stands.
func TestCommitWithoutItsStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPrivate(t, testenv.PrivateOptions{})
	p := newProjectIn(t, server.DB(t), fmt.Sprintf(liveConfig, "")+"lease_for: 1m\n")
	p.limitStatements(t, 200*time.Millisecond)
	run := p.live(t)
	p.both(t, 0)
	p.wantJoinedOnce(t, 1)
	server.Exec(t, "alter system set synchronous_standby_names = 'nobody'")
	server.Exec(t, "select pg_reload_conf()")
	p.both(t, 1)
	const waits = "select wait_event from pg_stat_activity where wait_event = 'SyncRep'"
	p.waitFor(t, "the commit waits", waits, "SyncRep")
	time.Sleep(600 * time.Millisecond)
	p.expect(t, "the commit still waits", waits, "SyncRep")
	p.expect(t, "results before the commit", activeRows, "matched l0/1 r0/1")
	p.exec(t, "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
	p.wantJoinedOnce(t, 2)
	server.Exec(t, "alter system reset synchronous_standby_names")
	server.Exec(t, "select pg_reload_conf()")
	p.both(t, 2)
	p.wantJoinedOnce(t, 3)
	run.wantStopped(t, "maybe not on the standbys", "unreplicated_commits=1")
}

// TestPoolerIsFoundAndSaid runs through a pooler in both modes.
func TestPoolerIsFoundAndSaid(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{testenv.PoolTransactions, testenv.PoolSessions} {
		db := testenv.DB(t)
		db.URL = db.Behind(t, mode)
		p := newProjectIn(t, db, fmt.Sprintf(liveConfig, ""))
		p.both(t, 0)
		_, _, stderr := execute1(t, "-c", p.config, "run", "--until-end")
		if !strings.Contains(stderr, fmt.Sprintf(`"it pools"=%ss`, mode)) {
			t.Errorf("the run doesn't say that %ss are pooled:\n%s", mode, stderr)
		}
		p.wantJoinedOnce(t, 1)
		if out := p.tally(t, "check"); !strings.Contains(out, "pools "+mode+"s") {
			t.Errorf("tally check doesn't say that %ss are pooled:\n%s", mode, out)
		}
	}
}

// TestHeldHorizon has another session hold back what the server may clean up. Results stay right and
// epochs quick; once it ends, the small tables that every epoch updates grow no more.
func TestHeldHorizon(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, "")+"epoch: {max_events: 2, max_delay: 1ms}\n")
	n := 0
	epochs := func(count int) time.Duration {
		t.Helper()
		for range count {
			p.both(t, n)
			n++
		}
		began := time.Now()
		p.tally(t, "run", "--until-end")
		return time.Since(began)
	}
	size := func() (bytes int64) {
		t.Helper()
		row := p.db.Pool.QueryRow(t.Context(), `select pg_table_size('tally.shard') +
			pg_table_size('tally.source_offset')`)
		if err := row.Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	count := rounds(300, 5000)
	free := epochs(count)
	small := size()
	// A snapshot without a transaction id: with one it would hold back what other tests read.
	end := p.aside(t, "set transaction isolation level repeatable read; select count(*) from tally.shard")
	held := epochs(count)
	grown := size()
	end()
	// A transaction that another test writes in holds it too, in whatever database, and so does each
	// run for as long as it checks what its start left unread: one run of a few is without.
	after, grows := grown, true
	for tries := 0; grows && tries < 10; tries++ {
		before := after
		epochs(count)
		after = size()
		grows = after > before+64<<10
	}
	p.wantJoinedOnce(t, n)
	t.Logf("%d epochs in %s, %s with the horizon held; %d bytes, then %d, then %d", count, free, held,
		small, grown, after)
	if held > 5*free+5*time.Second {
		t.Errorf("%d epochs took %s with the horizon held, %s without", count, held, free)
	}
	if small > 512<<10 || grows {
		t.Errorf("the hot tables take %d bytes, %d with the horizon held, %d afterwards, and grow",
			small, grown, after)
	}
}
