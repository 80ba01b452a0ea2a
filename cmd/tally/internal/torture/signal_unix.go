//go:build unix

package torture

import (
	"os"
	"syscall"
	"time"
)

// killSelf ends this process as kill -9 does. It does not return.
func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// stopSelf freezes this process until somebody resumes it.
func stopSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	// Another thread may be the one to take the signal; this one does nothing until it has.
	const taken = 20 * time.Millisecond
	time.Sleep(taken)
}

// resume lets a frozen process go on.
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// supported is nil where processes can be stopped and resumed.
var supported error
