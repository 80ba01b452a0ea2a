package testenv

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Breakable is a server that one test has to itself, to pause, kill and cut off: a container where a
// Docker engine answers, else a private cluster behind a relay, which a line on standard error says.
type Breakable struct {
	// URL connects to the database postgres as a superuser.
	URL string
	// What says which of the two it is.
	What string

	// Pause freezes the server, and Resume lets it go on.
	Pause, Resume func(t testing.TB)
	// Disconnect cuts it off the network, and Connect ends that.
	Disconnect, Connect func(t testing.TB)
	// Kill ends it without notice, and Start starts it again.
	Kill, Start func(t testing.TB)
}

// NewBreakable starts a server that ends with the test.
func NewBreakable(t testing.TB) *Breakable {
	t.Helper()
	way := os.Getenv(envWay)
	if way == "" || way == "container" {
		b, err := breakableContainer(t)
		if err == nil {
			return b
		}
		if way == "container" {
			t.Fatalf("testenv: %v", err)
		}
		line := fmt.Sprintf("testenv: NO CONTAINER IS PAUSED, KILLED AND CUT OFF, a private cluster is: %v",
			err)
		fmt.Fprintln(os.Stderr, line)
		if err := report(line); err != nil {
			t.Fatalf("testenv: %v", err)
		}
	}
	return breakableCluster(t)
}

// DB gives a migrated database on the server. It goes with the server.
func (b *Breakable) DB(t testing.TB) *Database {
	t.Helper()
	return (&Private{URL: b.URL}).DB(t)
}

const postgresPort = "5432/tcp"

// breakableContainer starts a container whose port stays the same when it is started again.
func breakableContainer(t testing.TB) (*Breakable, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	fixed := testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
		c.PortBindings = network.PortMap{network.MustParsePort(postgresPort): {{
			HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: port,
		}}}
	})
	e, id, err := runContainer(ctx, fixed)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := e.stop(ctx); err != nil {
			t.Errorf("testenv: remove a container: %v", err)
		}
	})
	engine, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = engine.Close() })
	do := func(what string, act func(ctx context.Context) error) func(testing.TB) {
		return func(t testing.TB) {
			t.Helper()
			ctx, cancel := cleanupContext()
			defer cancel()
			if err := act(ctx); err != nil {
				t.Fatalf("testenv: %s the container: %v", what, err)
			}
		}
	}
	const bridge = "bridge"
	return &Breakable{
		URL: e.url, What: e.what,
		Pause: do("pause", func(ctx context.Context) error { return pause(ctx, engine, id) }),
		Resume: do("resume", func(ctx context.Context) error {
			_, err := engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
			return err
		}),
		Disconnect: do("disconnect", func(ctx context.Context) error {
			_, err := engine.NetworkDisconnect(ctx, bridge,
				client.NetworkDisconnectOptions{Container: id, Force: true})
			return err
		}),
		Connect: do("connect", func(ctx context.Context) error {
			_, err := engine.NetworkConnect(ctx, bridge, client.NetworkConnectOptions{Container: id})
			return err
		}),
		Kill: do("kill", func(ctx context.Context) error {
			_, err := engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
			return err
		}),
		Start: do("start", func(ctx context.Context) error {
			_, err := engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
			return err
		}),
	}, nil
}

// pause freezes a container. The freezer of version 1 control groups gives up when processes are
// forked or wait for the disk while it goes through them, and thaws the container: so it is tried
// again.
func pause(ctx context.Context, engine *testcontainers.DockerClient, id string) error {
	_, err := backoff.Retry(ctx, func() (client.ContainerPauseResult, error) {
		return engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
	}, backoff.WithBackOff(backoff.NewConstantBackOff(50*time.Millisecond)),
		backoff.WithMaxElapsedTime(cleanupTimeout/2))
	return err
}

// breakableCluster does the same to a private cluster: its processes are stopped and resumed, and a
// relay in front of it stands for the network.
func breakableCluster(t testing.TB) *Breakable {
	t.Helper()
	p := NewPrivate(t, PrivateOptions{})
	relay := newRelay(t, p.Host)
	signal := func(s syscall.Signal) func(testing.TB) {
		return func(t testing.TB) {
			t.Helper()
			pid := p.PID(t)
			for _, process := range append([]int{pid}, childrenOf(t, pid)...) {
				// A session may have ended meanwhile.
				if err := syscall.Kill(process, s); err != nil && process == pid {
					t.Fatalf("testenv: send %s to the server: %v", s, err)
				}
			}
		}
	}
	return &Breakable{
		URL:        strings.Replace(p.URL, p.Host, relay.address(), 1),
		What:       "a private cluster from " + p.bin,
		Pause:      signal(syscall.SIGSTOP),
		Resume:     signal(syscall.SIGCONT),
		Kill:       p.Kill,
		Start:      p.Start,
		Disconnect: func(testing.TB) { relay.cut() },
		Connect:    func(testing.TB) { relay.mend() },
	}
}

// childrenOf lists the processes that a server has forked.
func childrenOf(t testing.TB, pid int) (children []int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		t.Fatalf("testenv: list the server's processes: %v", err)
	}
	for field := range strings.FieldsSeq(string(text)) {
		var child int
		if _, err := fmt.Sscan(field, &child); err != nil {
			t.Fatalf("testenv: list the server's processes: %v", err)
		}
		children = append(children, child)
	}
	return children
}

// WaitReady waits until the server answers again.
func (b *Breakable) WaitReady(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(serverTimeout); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		conn, err := pgx.Connect(ctx, b.URL)
		if err == nil {
			_ = conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("testenv: the server does not answer again: %v", err)
		}
	}
}
