package testenv

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

//go:embed cluster.sh
var clusterScript string

// portAttempts bounds the tries at a free port: another process may take it before Postgres does.
const portAttempts = 5

// binaryPatterns are where packages put Postgres besides the PATH: Debian, Red Hat, Homebrew.
var binaryPatterns = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// startCluster makes a private cluster in a temporary directory, listening on 127.0.0.1 and on a
// socket in that directory. As root it runs as the user postgres, since Postgres refuses root.
func startCluster(ctx context.Context) (*endpoint, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	owner, err := clusterOwner()
	if err != nil {
		return nil, err
	}
	var failures []error
	for range portAttempts {
		e, err := startClusterOnce(ctx, bin, owner)
		if err == nil {
			return e, nil
		}
		failures = append(failures, err)
		if !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	return nil, errors.Join(failures...)
}

func startClusterOnce(
	ctx context.Context, bin string, owner *syscall.Credential,
) (*endpoint, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	password := rand.Text()
	dir, err := clusterDir(owner, password)
	if err != nil {
		return nil, err
	}
	stop, err := runScript(ctx, clusterScript, dir, owner,
		append([]string{bin, dir, port}, serverSettings...)...)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start Postgres from %s: %w", bin, err)
	}
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", password),
		Host: net.JoinHostPort("127.0.0.1", port), Path: "/postgres",
		RawQuery: "sslmode=disable",
	}
	return &endpoint{url: address.String(), what: "a cluster from " + bin, stop: stop}, nil
}

func findBinaries() (string, error) {
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil && hasInitdb(filepath.Dir(resolved)) {
			return filepath.Dir(resolved), nil
		}
	}
	best, bestVersion := "", 0.0
	for _, pattern := range binaryPatterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("look for Postgres: %w", err)
		}
		for _, dir := range found {
			if version := versionIn(filepath.Dir(dir)); version > bestVersion && hasInitdb(dir) {
				best, bestVersion = dir, version
			}
		}
	}
	if best == "" {
		return "", fmt.Errorf("%w: no initdb in PATH, %s", errAbsent,
			strings.Join(binaryPatterns, ", "))
	}
	return best, nil
}

func hasInitdb(dir string) bool {
	_, err := exec.LookPath(filepath.Join(dir, "initdb"))
	return err == nil
}

// versionIn reads the number at the end of a path like /usr/lib/postgresql/15.
func versionIn(path string) float64 {
	digits := path[strings.LastIndexAny(path, "/-@")+1:]
	version, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return version
}

// clusterOwner gives the user to become, or nil where this process may run Postgres itself.
func clusterOwner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("become the user postgres, since Postgres refuses root: "+
			"run as another user, or add that one: %w", err)
	}
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("read the user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// clusterDir makes the cluster's directory with the superuser's password in it.
func clusterDir(owner *syscall.Credential, password string) (string, error) {
	return ownedDir("tally-pg-", owner, map[string]string{"secret": password + "\n"})
}

// ownedDir makes a temporary directory with these files in it, all of them the owner's.
func ownedDir(prefix string, owner *syscall.Credential, files map[string]string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("make a server's directory: %w", err)
	}
	paths := []string{dir}
	for name, text := range files {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	for _, path := range paths {
		if err == nil && owner != nil {
			err = os.Chown(path, int(owner.Uid), int(owner.Gid))
		}
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("prepare a server's directory: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
