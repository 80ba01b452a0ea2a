package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/store"
)

// cut says when a connection is cut, relative to a message to the server.
type cut string

const (
	beforeSend  cut = "before send"
	beforeReply cut = "after send, before the reply"
	afterReply  cut = "after the reply has come, before it is read"
)

var errCut error = &net.OpError{
	Op: "write", Net: "tcp", Err: errors.New("connection cut by the test"),
}

// fault cuts connections: at the message with number at, and again after each gap messages more,
// as many times as it says. A new connection asks for TLS and starts up before its first
// statement, so gaps of 0 and 1 hit the connecting and a gap of 2 the acquisition of the shard.
type fault struct {
	mu    sync.Mutex
	armed bool
	when  cut
	at    int
	times int
	gap   int
	hits  int
	sent  int
}

func (f *fault) arm(when cut, at, times, gap int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.when, f.at, f.times, f.gap, f.hits, f.sent = true, when, at, times, gap, 0, 0
}

// disarm gives how many connections were cut.
func (f *fault) disarm() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = false
	return f.hits
}

// strike tells whether the next message is to be cut.
func (f *fault) strike() (cut, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	number := f.sent
	f.sent++
	if !f.armed || number < f.at || f.hits == f.times {
		return "", false
	}
	f.hits++
	f.at = number + 1 + f.gap
	return f.when, true
}

func (f *fault) configure(config *pgxpool.Config) {
	// A ping before use would be struck in place of the message meant.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	dial := (&net.Dialer{}).DialContext
	config.ConnConfig.DialFunc = func(
		ctx context.Context, network, addr string,
	) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &faultyConn{Conn: conn, fault: f}, nil
	}
}

type faultyConn struct {
	net.Conn
	fault *fault
}

// cancelRequest is how a message begins that asks the server to cancel; pgx sends one when it gives
// a connection up. Where the network is cut it doesn't arrive.
var cancelRequest = []byte{0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e}

func (c *faultyConn) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, cancelRequest) {
		return 0, errCut
	}
	when, strike := c.fault.strike()
	if !strike {
		return c.Conn.Write(b)
	}
	if when != beforeSend {
		if n, err := c.Conn.Write(b); err != nil {
			return n, err
		}
	}
	if when == afterReply {
		// COPY data has no reply of its own.
		_ = c.Conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = c.Conn.Read(make([]byte, 1<<16))
	}
	return 0, errors.Join(errCut, c.Conn.Close())
}

func TestCommitSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	for _, when := range []cut{beforeSend, beforeReply, afterReply} {
		for _, again := range []struct{ times, gap int }{{1, 0}, {2, 0}, {2, 2}, {3, 2}} {
			t.Run(fmt.Sprintf("%s, %d times, gap %d", when, again.times, again.gap),
				func(t *testing.T) {
					t.Parallel()
					surviveEverywhere(t, when, again.times, again.gap)
				})
		}
	}
}

// surviveEverywhere cuts at message 0, 1, 2 … until a commit runs through uncut.
func surviveEverywhere(t *testing.T, when cut, times, gap int) {
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	want := b.dump(t)
	var total store.Stats
	k := 0
	for cutOnce := true; cutOnce; k++ {
		var stats store.Stats
		stats, cutOnce = surviveAt(t, b, want, k, func(f *fault) { f.arm(when, k, times, gap) })
		total.Reacquired += stats.Reacquired
		total.Resolved += stats.Resolved
	}
	t.Logf("%d messages, %d times acquired again, %d commits found done",
		k-1, total.Reacquired, total.Resolved)
	if k < 8 || total.Reacquired < int64(k-1) || when == afterReply && total.Resolved != 1 ||
		when == beforeSend && total.Resolved != 0 {
		t.Error("the faults did not do what they should")
	}
}

// surviveAt commits two epochs, the second with its connection cut at message k, and tells whether
// there was such a message.
func surviveAt(
	t *testing.T, b *bundle, want string, k int, arm func(*fault),
) (stats store.Stats, struck bool) {
	var f fault
	s := open(t, b.db, f.configure)
	defer s.Close()
	other := &bundle{Store: s, db: b.db}
	other.generation = other.register(t, fmt.Sprint("run ", k), 2)
	h := other.take(t, s)
	commit(t, h, busyDelta(1))
	arm(&f)
	commit(t, h, busyDelta(2))
	hits := f.disarm()
	wantSame(t, other.dump(t), want)
	commit(t, h, busyDelta(3))
	if again := other.take(t, s); again.Epoch != 3 {
		t.Errorf("cut at %d: the shard stands at epoch %d, want 3", k, again.Epoch)
	}
	return h.Stats(), hits > 0
}

// TestCommitWaitsForItself loses the connection while the server is still working on the commit.
func TestCommitWaitsForItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1))
	var f fault
	s := open(t, b.db, f.configure)
	h := b.take(t, s)
	if err := h.Leave(t.Context(), "warm"); err != nil { // so that a connection is open
		t.Fatal(err)
	}
	h = b.take(t, s)

	lock, err := b.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "lock table tally.epoch in exclusive mode"); err != nil {
		t.Fatal(err)
	}
	d := delta(2) // nothing to copy: one message holds all of it
	f.arm(beforeReply, 0, 1, 0)
	t.Cleanup(func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) })
	done := make(chan error, 1)
	go func() { done <- h.Commit(t.Context(), h.Encode(d)) }()
	b.waitForLocks(t, 2)
	if err := lock.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := h.Stats(); got.Resolved != 1 {
		t.Errorf("stats %+v, want 1 commit found done", got)
	}
}

// waitForLocks waits until n sessions wait for a lock.
func (b *bundle) waitForLocks(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var waiting int
		row := b.db.Pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`)
		if err := row.Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions wait for a lock, want %d", waiting, n)
		}
	}
}

// TestTakeBarsALateCommit lets another worker take the shard after a lost connection.
func TestTakeBarsALateCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var f fault
	s := open(t, b.db, f.configure)
	h := b.take(t, s)
	commit(t, h, busyDelta(1))
	other := b.take(t, b.Store)
	f.arm(beforeSend, 0, 1, 0)
	err := h.Commit(t.Context(), h.Encode(busyDelta(2)))
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("commit after the shard was taken: %v, want ErrFenced", err)
	}
	commit(t, other, busyDelta(2))
}

func TestCommitGivesUpWithUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var f fault
	s, err := store.Open(t.Context(), store.Config{
		ConnString: b.db.URL, Schema: b.db.Schema, RetryFor: 300 * time.Millisecond,
		Configure: f.configure,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := b.take(t, s)
	e := h.Encode(busyDelta(1))
	f.arm(beforeReply, 0, 1000, 0)
	err = h.Commit(t.Context(), e)
	f.disarm()
	if !errors.Is(err, store.ErrUnknown) || store.Classify(err) != store.Unknown {
		t.Fatalf("commit with every connection cut: %v, want ErrUnknown", err)
	}
	if err := h.Commit(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	wantEpoch := b.take(t, b.Store).Epoch
	if wantEpoch != 1 {
		t.Errorf("epoch %d, want 1", wantEpoch)
	}
}
