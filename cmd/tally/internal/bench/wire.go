package bench

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// wire counts what a pool's connections ask of the server, by the messages that they send.
type wire struct {
	statements, roundTrips atomic.Int64
}

// watch makes the connections of a pool be counted.
func (w *wire) watch(pc *pgxpool.Config) {
	pc.ConnConfig.AfterNetConnect = func(
		_ context.Context, _ *pgconn.Config, conn net.Conn,
	) (net.Conn, error) {
		return &countedConn{Conn: conn, wire: w}, nil
	}
}

// countedConn reads along in what the client sends: messages of a type, a length that covers itself,
// and a body. Only the first message has no type.
type countedConn struct {
	net.Conn
	wire    *wire
	started bool
	// header is the part of a message's type and length that was seen, body what is left of it.
	header []byte
	body   int
}

// Write implements net.Conn.
func (c *countedConn) Write(b []byte) (int, error) {
	c.read(b)
	return c.Conn.Write(b)
}

func (c *countedConn) read(b []byte) {
	for len(b) > 0 {
		if n := min(c.body, len(b)); n > 0 {
			c.body -= n
			b = b[n:]
			continue
		}
		want := 5
		if !c.started {
			want = 4
		}
		n := min(want-len(c.header), len(b))
		c.header = append(c.header, b[:n]...)
		b = b[n:]
		if len(c.header) < want {
			return
		}
		c.body = int(binary.BigEndian.Uint32(c.header[want-4:])) - 4
		if c.started {
			c.count(c.header[0])
		}
		c.started, c.header = true, c.header[:0]
	}
}

// count knows the messages of the frontend that run a statement or wait for an answer.
func (c *countedConn) count(message byte) {
	const execute, query, sync = 'E', 'Q', 'S'
	switch message {
	case execute:
		c.wire.statements.Add(1)
	case query:
		c.wire.statements.Add(1)
		c.wire.roundTrips.Add(1)
	case sync:
		c.wire.roundTrips.Add(1)
	}
}
