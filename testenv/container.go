package testenv

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"go.uber.org/goleak"
)

const (
	envImage = "TALLY_TEST_IMAGE"
	envReaps = "TESTCONTAINERS_RYUK_DISABLED"
	envHost  = "TESTCONTAINERS_HOST_OVERRIDE"

	publicImage = "postgres:15-alpine"
	reaperLoop  = "github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"

	// builtImage is what image/build.sh makes where no registry can be reached.
	builtImage = "tallystick/postgres:15"
)

// serverSettings trade durability for speed: a test's server dies with its process. The durability
// that the tests check is that of transactions, which these settings leave alone.
var serverSettings = []string{
	"fsync=off", "full_page_writes=off", "max_connections=200",
}

func startContainer(ctx context.Context) (*endpoint, error) {
	e, _, err := runContainer(ctx)
	return e, err
}

// containers tells whether a container was started in this process.
var containers atomic.Bool

// containerLeaks are the connections to the engine, and to the container that removes ours if we are
// killed; they last as long as a container.
var containerLeaks = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	goleak.IgnoreAnyFunction(reaperLoop),
}

// runContainer starts a container and gives its identity in the engine, too.
func runContainer(
	ctx context.Context, more ...testcontainers.ContainerCustomizer,
) (e *endpoint, id string, err error) {
	log.SetDefault(NewContainerLogger(slog.Default()))
	preferLocalhost()
	image := chooseImage(ctx)
	owner, err := ownerName()
	if err != nil {
		return nil, "", err
	}
	if err := prepareEngine(ctx); err != nil {
		return nil, "", fmt.Errorf("%w: no Docker engine answers: %w", errAbsent, err)
	}
	command := []string{"postgres"}
	for _, setting := range serverSettings {
		command = append(command, "-c", setting)
	}
	containers.Store(true)
	started, err := postgres.Run(ctx, image, append([]testcontainers.ContainerCustomizer{
		testcontainers.WithCmd(command...),
		testcontainers.WithLogger(log.Default()),
		testcontainers.WithLabels(map[string]string{ownerLabel: owner}),
		postgres.BasicWaitStrategies(),
	}, more...)...)
	// The container may exist although it failed, and terminating takes care of none.
	stop := func(context.Context) error {
		return testcontainers.TerminateContainer(started, testcontainers.StopTimeout(0))
	}
	if err != nil {
		_ = stop(ctx)
		return nil, "", fmt.Errorf("start a container of image %s: %w", image, err)
	}
	address, err := started.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		_ = stop(ctx)
		return nil, "", fmt.Errorf("find the container's address: %w", err)
	}
	what := "a container of image " + image
	return &endpoint{url: address, what: what, stop: stop}, started.GetContainerID(), nil
}

// chooseImage and preferLocalhost must come before any other use of testcontainers, which reads its environment once.
func chooseImage(ctx context.Context) string {
	if image := os.Getenv(envImage); image != "" {
		return image
	}
	if !imageBuilt(ctx) {
		return publicImage
	}
	// Who had to build the image can't pull the one of the reaper either.
	_ = os.Setenv(envReaps, cmp.Or(os.Getenv(envReaps), "true"))
	return builtImage
}

// preferLocalhost corrects testcontainers where it takes the machine for a container, by a file
// that some machine images are left with, and would look for the ports at the default gateway.
// An engine whose bridge is ours publishes them on this machine.
func preferLocalhost() {
	address := os.Getenv(client.EnvOverrideHost)
	if address != "" && !strings.HasPrefix(address, "unix:") {
		return
	}
	if _, err := net.InterfaceByName("docker0"); err == nil {
		_ = os.Setenv(envHost, cmp.Or(os.Getenv(envHost), "127.0.0.1"))
	}
}

func imageBuilt(ctx context.Context) bool {
	engine, err := client.New(client.FromEnv)
	if err != nil {
		return false
	}
	defer engine.Close()
	_, err = engine.ImageInspect(ctx, builtImage)
	return err == nil
}

// prepareEngine finds out whether an engine answers, and tidies it up. The panics with which
// testcontainers reports some absent engines become errors.
func prepareEngine(ctx context.Context) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	engine, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	return removeAbandoned(ctx, engine)
}
