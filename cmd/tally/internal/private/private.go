// Package private runs a Postgres of one's own for as long as it is wanted: from the binaries found
// on the machine, else in a container by the docker program. Nothing of it is left behind.
package private

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	role         = "tally"
	database     = "postgres"
	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

// errAbsent reports that a way to a server is not open on this machine.
var errAbsent = errors.New("not found")

// Server is a running Postgres.
type Server struct {
	// URL connects to it as its superuser. The password is random and dies with the server.
	URL string
	// What says in words which Postgres this is.
	What string

	stop func(context.Context) error
}

// Start starts a server: with the machine's binaries in dir, a temporary directory when dir is
// empty, or else in a container. It returns once the server answers.
func Start(ctx context.Context, dir string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	password := rand.Text()
	server, err := startCluster(ctx, dir, password)
	if errors.Is(err, errAbsent) {
		binaries := err
		server, err = startContainer(ctx, password)
		if errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("no Postgres to start here: %w; %w: install Postgres 14 or newer "+
				"(on Debian: apt-get install postgresql) or Docker, or name a database with --database",
				binaries, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start a private Postgres: %w", err)
	}
	return server, nil
}

// Stop stops the server and removes all of it. It works after ctx is cancelled, too.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.stop(ctx); err != nil {
		return fmt.Errorf("stop the private Postgres: %w", err)
	}
	return nil
}

func urlOf(password, hostPort string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, password), Host: hostPort,
		Path: database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// waitReady waits until the server answers; failed is closed when it never will.
func waitReady(ctx context.Context, url string, failed <-chan struct{}) error {
	const pause = 50 * time.Millisecond
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-failed:
			return errors.New("it ended while starting")
		case <-ctx.Done():
			return fmt.Errorf("it doesn't answer: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}
