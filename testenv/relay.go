package testenv

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay passes connections on to a server, and can be cut.
type relay struct {
	target   string
	listener net.Listener
	group    sync.WaitGroup

	mu   sync.Mutex
	torn bool
	open map[net.Conn]struct{}
}

func newRelay(t testing.TB, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("testenv: open a relay: %v", err)
	}
	r := &relay{target: target, listener: listener, open: map[net.Conn]struct{}{}}
	r.group.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
		r.group.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

// cut breaks all connections and refuses new ones until mend.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.torn = true
	for conn := range r.open {
		_ = conn.Close()
	}
}

func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.torn = false
}

func (r *relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.group.Go(func() { r.pass(from) })
	}
}

// pass copies in both directions until one side closes.
func (r *relay) pass(from net.Conn) {
	to, err := net.Dial("tcp", r.target)
	if err != nil || !r.keep(from, to) {
		_ = from.Close()
		if err == nil {
			_ = to.Close()
		}
		return
	}
	defer r.drop(from, to)
	ended := make(chan struct{}, 2)
	for _, way := range [2][2]net.Conn{{from, to}, {to, from}} {
		r.group.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // an error is an end
			ended <- struct{}{}
		})
	}
	<-ended
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		if !r.torn {
			r.open[conn] = struct{}{}
		}
	}
	return !r.torn
}

func (r *relay) drop(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(r.open, conn)
	}
}
