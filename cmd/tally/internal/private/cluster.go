package private

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// majorMin is the oldest Postgres that tally works with.
const majorMin = 14

// binaryDirs are where packagers put the server's programs, which are rarely on the path.
var binaryDirs = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// cluster is a server process and its directory.
type cluster struct {
	binaries string
	version  string
	dir      string
	process  *exec.Cmd
	output   bytes.Buffer
	// ended is closed when the process has; output may be read from then on.
	ended chan struct{}
}

func startCluster(ctx context.Context, dir, password string) (*Server, error) {
	binaries, version, err := findBinaries(ctx)
	if err != nil {
		return nil, err
	}
	c := &cluster{binaries: binaries, version: version, ended: make(chan struct{})}
	if err := c.makeDir(dir); err != nil {
		return nil, err
	}
	port, err := c.start(ctx, password)
	if err != nil {
		return nil, errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	}
	return &Server{
		URL:  c.url(password, port),
		What: fmt.Sprintf("PostgreSQL %s from %s on 127.0.0.1:%d", version, binaries, port),
		stop: c.stop,
	}, nil
}

func (c *cluster) url(password string, port int) string {
	return urlOf(password, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// start makes the cluster and starts the server.
func (c *cluster) start(ctx context.Context, password string) (port int, err error) {
	if err := c.initialise(ctx, password); err != nil {
		return 0, err
	}
	if port, err = freePort(ctx); err != nil {
		return 0, err
	}
	if err := c.launch(ctx, port); err != nil {
		return 0, err
	}
	if err := waitReady(ctx, c.url(password, port), c.ended); err != nil {
		return 0, fmt.Errorf("%w%s", err, c.lastWords())
	}
	return port, nil
}

// makeDir makes the directory of everything, owned by the user the server runs as.
func (c *cluster) makeDir(dir string) (err error) {
	if dir == "" {
		dir, err = os.MkdirTemp("", "tally-postgres-")
	} else if err = os.Mkdir(dir, 0o700); errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already; name a directory that isn't", dir)
	}
	if err != nil {
		return fmt.Errorf("make the server's directory: %w", err)
	}
	if c.dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("make the server's directory: %w", err)
	}
	return giveAway(c.dir)
}

func (c *cluster) initialise(ctx context.Context, password string) error {
	secret := filepath.Join(c.dir, "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the server's password: %w", err)
	}
	if err := giveAway(secret); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.binaries, "initdb"), "-D", c.data(),
		"-U", role, "--auth=scram-sha-256", "--pwfile="+secret, "--encoding=UTF8", "--no-locale",
		"--no-sync")
	cmd.Dir = c.dir
	if err := isolate(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	return os.Remove(secret)
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// launch starts the server in a process group of its own, so that an interrupt from the terminal
// reaches tally alone and the server is stopped in order.
func (c *cluster) launch(ctx context.Context, port int) error {
	// The server outlives the context: stop ends it.
	c.process = exec.CommandContext(context.WithoutCancel(ctx),
		filepath.Join(c.binaries, "postgres"), "-D", c.data(), "-p", strconv.Itoa(port),
		"-k", c.dir, "-c", "listen_addresses=127.0.0.1")
	c.process.Dir = c.dir
	c.process.Stdout, c.process.Stderr = &c.output, &c.output
	if err := isolate(c.process); err != nil {
		return err
	}
	if err := c.process.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	go func() {
		_ = c.process.Wait() // the log says more than the exit status
		close(c.ended)
	}()
	return nil
}

// lastWords gives the end of the server's log once it has ended.
func (c *cluster) lastWords() string {
	select {
	case <-c.ended:
		text := bytes.TrimSpace(c.output.Bytes())
		return "; its log ends: " + string(text[max(0, len(text)-500):])
	default:
		return ""
	}
}

// stop asks for a fast shutdown, then an immediate one, and removes the directory.
func (c *cluster) stop(ctx context.Context) error {
	if c.process != nil && c.process.Process != nil {
		const patience = 10 * time.Second
		_ = c.process.Process.Signal(syscall.SIGINT) // an error means that it has ended
		select {
		case <-c.ended:
		case <-time.After(patience):
			_ = c.process.Process.Signal(syscall.SIGQUIT)
		}
		select {
		case <-c.ended:
		case <-ctx.Done():
			return fmt.Errorf("postgres (process %d) doesn't end: %w", c.process.Process.Pid, ctx.Err())
		}
	}
	return os.RemoveAll(c.dir)
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)[^ \n]*)`)

// findBinaries looks for the newest server programs on the machine.
func findBinaries(ctx context.Context) (dir, version string, err error) {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range binaryDirs {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", "", err
		}
		dirs = append(dirs, found...)
	}
	newest := majorMin - 1
	for _, d := range dirs {
		out, err := exec.CommandContext(ctx, filepath.Join(d, "postgres"), "--version").Output()
		match := versionText.FindSubmatch(out)
		if err != nil || match == nil {
			continue
		}
		if major, _ := strconv.Atoi(string(match[2])); major > newest {
			newest, dir, version = major, d, string(match[1])
		}
	}
	if dir == "" {
		return "", "", fmt.Errorf("server programs of Postgres %d or newer: %w", majorMin, errAbsent)
	}
	return dir, version, nil
}

// freePort asks the system for a port that is free now.
func freePort(ctx context.Context) (int, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
