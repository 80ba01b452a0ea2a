package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/moby/client"
)

// ownerLabel is on each of our containers and names the process that uses it, as host:pid.
const ownerLabel = "tallystick.testenv.owner"

func ownerName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name the owner of a container: %w", err)
	}
	return host + ":" + strconv.Itoa(os.Getpid()), nil
}

// removeAbandoned removes the containers of test processes of this host that are gone. The reaper
// of testcontainers does that only where its image can be had.
func removeAbandoned(ctx context.Context, engine client.APIClient) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("look for abandoned containers: %w", err)
	}
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", ownerLabel),
	})
	if err != nil {
		return fmt.Errorf("look for abandoned containers: %w", err)
	}
	for _, c := range list.Items {
		pid, ours := strings.CutPrefix(c.Labels[ownerLabel], host+":")
		if !ours || processRuns(pid) {
			continue
		}
		// Another test process may be quicker; then there is nothing left to remove.
		_, _ = engine.ContainerRemove(ctx, c.ID,
			client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	}
	return nil
}

// processRuns is true for what is no process number as well: only what is surely gone is removed.
func processRuns(text string) bool {
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return true
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
