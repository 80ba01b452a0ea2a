package private

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// imagePulled is what runs where the machine has no Postgres of its own, unless one of imagesLocal
// is there already: the image that the tests use is made without a registry.
const imagePulled = "postgres:17-alpine"

var imagesLocal = []string{"tallystick/postgres:15", "postgres:15-alpine"}

// startContainer runs the image with a port on 127.0.0.1 only.
func startContainer(ctx context.Context, password string) (*Server, error) {
	if _, err := docker(ctx, "", "version", "--format", "{{.Server.Version}}"); err != nil {
		return nil, fmt.Errorf("a Docker engine: %w", errAbsent)
	}
	image := imagePulled
	for _, local := range imagesLocal {
		if _, err := docker(ctx, "", "image", "inspect", "--format", "{{.Id}}", local); err == nil {
			image = local
			break
		}
	}
	// The password goes by the environment: arguments are seen by every user of the machine.
	id, err := docker(ctx, password, "run", "--detach", "--rm", "--publish", "127.0.0.1::5432",
		"--env", "POSTGRES_PASSWORD", "--env", "POSTGRES_USER="+role,
		"--env", "POSTGRES_DB="+database, "--env", "POSTGRES_INITDB_ARGS=--no-locale", image)
	if err != nil {
		return nil, err
	}
	stop := func(ctx context.Context) error {
		_, err := docker(ctx, "", "rm", "--force", "--volumes", id)
		return err
	}
	hostPort, err := docker(ctx, "", "port", id, "5432/tcp")
	if err == nil {
		hostPort, _, _ = strings.Cut(hostPort, "\n")
		err = waitReady(ctx, urlOf(password, hostPort), nil)
	}
	if err != nil {
		return nil, errors.Join(err, stop(context.WithoutCancel(ctx)))
	}
	return &Server{
		URL:  urlOf(password, hostPort),
		What: fmt.Sprintf("the container %.12s of %s on %s", id, image, hostPort),
		stop: stop,
	}, nil
}

func docker(ctx context.Context, password string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "POSTGRES_PASSWORD="+password)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}
