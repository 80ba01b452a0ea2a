package torture

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// when says where in the exchange of one message with the server something happens.
type when int

const (
	beforeSend when = iota
	afterSend
	afterReply // it has come, and nobody has read it
)

// replyTimeout bounds the wait for a reply that is to be lost.
const replyTimeout = 2 * time.Second

var errCut = errors.New("the crash lab cut the connection")

// wire is all connections of a process to its server. The zero value is ready.
type wire struct {
	mu    sync.Mutex
	conns map[*tappedConn]struct{}
	shot  *shot
}

// shot is what happens at the next message with a text in it.
type shot struct {
	text []byte
	when when
	act  func() (cut bool)
}

// arm replaces what was armed and not used.
func (w *wire) arm(text string, at when, act func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shot = &shot{text: []byte(text), when: at, act: act}
}

// take gives what happens at a message, nil for nothing.
func (w *wire) take(message []byte) *shot {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.shot
	if s == nil || !bytes.Contains(message, s.text) {
		return nil
	}
	w.shot = nil
	return s
}

// wrap taps a connection above its encryption.
func (w *wire) wrap(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
	tapped := &tappedConn{Conn: conn, wire: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		w.conns = map[*tappedConn]struct{}{}
	}
	w.conns[tapped] = struct{}{}
	return tapped, nil
}

// cutAll breaks every connection.
func (w *wire) cutAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		_ = conn.Conn.Close()
	}
	clear(w.conns)
}

type tappedConn struct {
	net.Conn
	wire *wire
}

func (c *tappedConn) Write(message []byte) (int, error) {
	s := c.wire.take(message)
	if s == nil {
		return c.Conn.Write(message)
	}
	if s.when == beforeSend {
		if s.act() {
			return 0, errors.Join(errCut, c.Close())
		}
		return c.Conn.Write(message)
	}
	n, err := c.Conn.Write(message)
	if err != nil {
		return n, err
	}
	if s.when == afterReply {
		c.swallowReply()
	}
	if s.act() {
		return 0, errors.Join(errCut, c.Close())
	}
	return n, nil
}

// swallowReply reads until the server is ready for the next query.
func (c *tappedConn) swallowReply() {
	_ = c.SetReadDeadline(time.Now().Add(replyTimeout))
	ready := []byte{'Z', 0, 0, 0, 5}
	var reply []byte
	buffer := make([]byte, 1<<12)
	for {
		n, err := c.Read(buffer)
		reply = append(reply, buffer[:n]...)
		if at := len(reply) - len(ready) - 1; err != nil || at >= 0 && bytes.HasPrefix(reply[at:], ready) {
			return
		}
	}
}

func (c *tappedConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}
