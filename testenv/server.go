package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The environment variables that steer the choice of a server.
const (
	envURL    = "TALLY_TEST_DATABASE_URL"
	envWay    = "TALLY_TEST_POSTGRES"
	envReport = "TALLY_TEST_REPORT"
)

const startTimeout = 3 * time.Minute

// errAbsent reports that a way to a server is not open on this machine; the next one is tried.
var errAbsent = errors.New("not there")

// way is one way to a server.
type way struct {
	name  string
	start func(context.Context) (*endpoint, error)
}

// endpoint is a running server: where it is, what to call it, and how to stop it.
type endpoint struct {
	url  string
	what string
	stop func(context.Context) error
}

// lazyServer starts at most one server in the process.
type lazyServer struct {
	once   sync.Once
	server *server
	err    error
}

var shared lazyServer

func (l *lazyServer) get(t testing.TB) *server {
	t.Helper()
	l.once.Do(func() {
		// Not the test's context: the server outlives the test that wanted it first.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		l.server, l.err = startServer(ctx)
	})
	if l.err != nil {
		t.Fatalf("testenv: %v", l.err)
	}
	return l.server
}

func (l *lazyServer) stop() error {
	if l.server == nil {
		return nil
	}
	ctx, cancel := cleanupContext()
	defer cancel()
	return l.server.close(ctx)
}

func startServer(ctx context.Context) (*server, error) {
	began := time.Now()
	e, err := startEndpoint(ctx)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, e)
	if err != nil {
		return nil, errors.Join(err, e.stop(ctx))
	}
	line := fmt.Sprintf("testenv: PostgreSQL %s, %s", s.version(), e.what)
	fmt.Fprintf(os.Stderr, "%s (ready after %.1fs)\n", line, time.Since(began).Seconds())
	if err := report(line); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// startEndpoint tries the ways in order. A way that is not open is passed over; where an engine or
// binaries are there but fail, the reason is printed and the next way is tried.
func startEndpoint(ctx context.Context) (*endpoint, error) {
	ways, err := allowedWays(os.Getenv(envWay), os.Getenv(envURL))
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, w := range ways {
		e, err := w.start(ctx)
		if err == nil {
			return e, nil
		}
		reasons = append(reasons, fmt.Sprintf("  %s: %v", w.name, err))
		if !errors.Is(err, errAbsent) {
			fmt.Fprintf(os.Stderr, "testenv: Postgres by %s failed: %v\n", w.name, err)
		}
	}
	return nil, fmt.Errorf("no Postgres for the tests:\n%s\n"+
		"set %s to a server on which databases may be created, or start a Docker engine, "+
		"or install Postgres (on Debian: apt-get install postgresql)",
		strings.Join(reasons, "\n"), envURL)
}

func allowedWays(forced, databaseURL string) ([]way, error) {
	byURL := way{"url", func(context.Context) (*endpoint, error) { return givenServer(databaseURL) }}
	container := way{"container", startContainer}
	binaries := way{"binaries", startCluster}
	switch forced {
	case "":
		if databaseURL != "" {
			return []way{byURL}, nil
		}
		return []way{container, binaries}, nil
	case byURL.name:
		return []way{byURL}, nil
	case container.name:
		return []way{container}, nil
	case binaries.name:
		return []way{binaries}, nil
	}
	return nil, fmt.Errorf("%s is %q: want url, container or binaries", envWay, forced)
}

func givenServer(databaseURL string) (*endpoint, error) {
	if databaseURL == "" {
		return nil, fmt.Errorf("%s: %w", envURL, errAbsent)
	}
	parsed, err := url.Parse(databaseURL)
	if err != nil || !strings.HasPrefix(parsed.Scheme, "postgres") {
		// The value itself may hold a password.
		return nil, fmt.Errorf("%s: want a URL like postgres://user@host/database", envURL)
	}
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envURL, err)
	}
	return &endpoint{
		url:  databaseURL,
		what: fmt.Sprintf("the server at %s:%d named by %s", config.Host, config.Port, envURL),
		stop: func(context.Context) error { return nil },
	}, nil
}

// report appends the line to the file that TALLY_TEST_REPORT names, because go test hides the
// standard error of packages that pass.
func report(line string) error {
	path := os.Getenv(envReport)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("report the server used: %w", err)
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}
