//go:build unix

package private

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// isolate puts a program into a process group of its own and, since Postgres refuses to run as
// root, under another user when tally runs as root.
func isolate(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := unprivileged()
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return nil
}

// giveAway lets the user that the server runs as own a file.
func giveAway(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := unprivileged()
	if err != nil {
		return err
	}
	if err := os.Chown(path, int(uid), int(gid)); err != nil {
		return fmt.Errorf("hand %s to the server's user: %w", path, err)
	}
	return nil
}

// unprivileged gives the user postgres, else nobody.
func unprivileged() (uid, gid uint32, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		u, errU := strconv.ParseUint(found.Uid, 10, 32)
		g, errG := strconv.ParseUint(found.Gid, 10, 32)
		if errU == nil && errG == nil {
			return uint32(u), uint32(g), nil
		}
	}
	return 0, 0, fmt.Errorf("run Postgres as root: it refuses, and there is no user postgres: %w",
		errAbsent)
}
