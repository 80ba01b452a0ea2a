package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// runScript starts a shell script in dir as the owner and waits until it says ready. The script
// runs until its standard input closes, so that what it started ends with this process, however
// that ends. The function it returns ends it and waits.
func runScript(
	ctx context.Context, text, dir string, owner *syscall.Credential, arguments ...string,
) (func(context.Context) error, error) {
	script := exec.Command("/bin/sh", append([]string{"-c", text, "tally-testenv"}, arguments...)...)
	// A group of its own keeps an interrupt at the terminal from ending the script before the pipe
	// closes.
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: owner}
	script.Dir = dir
	in, err := script.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := script.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := script.Start(); err != nil {
		return nil, err
	}
	stop := func(context.Context) error { return errors.Join(in.Close(), script.Wait()) }
	group := -script.Process.Pid
	unwatch := context.AfterFunc(ctx, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	defer unwatch()
	answer := bufio.NewReader(out)
	line, err := answer.ReadString('\n')
	if err == nil && line == "ready\n" {
		return stop, nil
	}
	complaints, err := io.ReadAll(answer)
	return nil, errors.Join(fmt.Errorf("%s%s", line, complaints), err, stop(ctx))
}
