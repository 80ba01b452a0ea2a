package store_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// slowConn sleeps before one of its messages, as a client does that is stopped in a transaction.
type slowConn struct {
	net.Conn
	left  *atomic.Int64
	sleep time.Duration
}

func (c *slowConn) Write(b []byte) (int, error) {
	if c.left.Add(-1) == 0 {
		time.Sleep(c.sleep)
	}
	return c.Conn.Write(b)
}

// TestIdleInTransaction lets the server end the transaction of a client that stops at each of its
// messages: as a lost connection, and the epoch is committed after all.
func TestIdleInTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	want := b.dump(t)
	if _, err := b.db.Pool.Exec(t.Context(), "alter database "+
		pgx.Identifier{b.db.Pool.Config().ConnConfig.Database}.Sanitize()+
		" set idle_in_transaction_session_timeout = '100ms'"); err != nil {
		t.Fatal(err)
	}
	direct := *b.db
	direct.URL = b.db.Direct // a pooler keeps sessions from before the setting
	lost := int64(0)
	for message := int64(1); message <= 8; message++ {
		var left atomic.Int64
		s := open(t, &direct, func(config *pgxpool.Config) {
			config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
			dial := (&net.Dialer{}).DialContext
			config.ConnConfig.DialFunc = func(
				ctx context.Context, network, addr string,
			) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return &slowConn{Conn: conn, left: &left, sleep: 400 * time.Millisecond}, err
			}
		})
		other := &bundle{Store: s, db: b.db}
		other.generation = other.register(t, "idle "+string(rune('0'+message)), 2)
		h := other.take(t, s)
		commit(t, h, busyDelta(1))
		left.Store(message)
		commit(t, h, busyDelta(2))
		wantSame(t, other.dump(t), want)
		lost += s.Troubles().Lost
	}
	if lost < 2 {
		t.Errorf("the server ended %d transactions, want several", lost)
	}
}
