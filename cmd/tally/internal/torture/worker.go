package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
)

// Command is the hidden command that runs a worker with faults, below tally torture.
const Command = "worker"

// NoticeFD is the file descriptor on which a worker writes its notices.
const NoticeFD = 3

// workerTimeout bounds the life of one worker.
const workerTimeout = 2 * time.Minute

// worker is a running process of this program that reconciles a trial's files.
type worker struct {
	cmd     *exec.Cmd
	stderr  strings.Builder
	notices chan notice
	cancel  context.CancelFunc
	// ended is closed once the process is gone; err says how.
	ended chan struct{}
	err   error
}

// startWorker starts a process with the faults, by their number in the plan.
func (t *trial) startWorker(ctx context.Context, faults map[int]Fault) (*worker, error) {
	text, err := json.Marshal(faults)
	if err != nil {
		return nil, fmt.Errorf("encode the faults: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for a worker: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	w := &worker{cancel: cancel, notices: make(chan notice, 1), ended: make(chan struct{})}
	w.cmd = exec.CommandContext(ctx, t.Program, "-c", filepath.Join(t.dir, config.FileDefault),
		"--log-level", "warn", "torture", Command,
		"--lease", t.Lease.String(), "--faults", string(text))
	w.cmd.Env = os.Environ()
	if t.Database != "" {
		w.cmd.Env = append(w.cmd.Env, "DATABASE_URL="+t.Database)
	}
	w.cmd.ExtraFiles = []*os.File{write}
	w.cmd.Stderr = &w.stderr
	err = w.cmd.Start()
	if err := errors.Join(err, write.Close()); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), read.Close())
	}
	go w.watch(read)
	return w, nil
}

// watch hands on what the worker tells, until it ends.
func (w *worker) watch(read *os.File) {
	defer w.cancel()
	scanner := bufio.NewScanner(read)
	for scanner.Scan() {
		var n notice
		if json.Unmarshal(scanner.Bytes(), &n) != nil {
			break // cut off in the middle
		}
		w.notices <- n
	}
	close(w.notices)
	_ = read.Close()
	w.err = w.cmd.Wait()
	close(w.ended)
}

// killed tells of an end by SIGKILL.
const killed = -1

// wait gives the exit code, killed for none. Before it, the notices have to be read to their end.
func (w *worker) wait() (int, error) {
	<-w.ended
	if w.err == nil {
		return 0, nil
	}
	exit, ok := errors.AsType[*exec.ExitError](w.err)
	if !ok {
		return 0, fmt.Errorf("wait for a worker: %w", w.err)
	}
	return exit.ExitCode(), nil
}

// end kills a worker that is still there.
func (w *worker) end() {
	w.cancel()
	for range w.notices { // so that the watcher goes on
	}
	<-w.ended
}

// says gives what a worker wrote, for the report of a failure.
func (w *worker) says() string {
	text := strings.TrimSpace(w.stderr.String())
	if text == "" {
		return "it said nothing"
	}
	return "it said:\n" + text
}
