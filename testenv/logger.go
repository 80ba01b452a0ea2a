package testenv

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// ContainerLogger gives testcontainers' printf logger the structured logger of the tests.
type ContainerLogger struct {
	logger *slog.Logger
}

// NewContainerLogger wraps logger. Lines arrive at debug level, because testcontainers has no
// levels of its own and tells every step of a container's life.
func NewContainerLogger(logger *slog.Logger) ContainerLogger {
	return ContainerLogger{logger: logger}
}

// Printf implements testcontainers' log.Logger.
func (l ContainerLogger) Printf(format string, args ...any) {
	ctx := context.Background()
	if !l.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	line := strings.TrimSpace(fmt.Sprintf(format, args...))
	l.logger.LogAttrs(ctx, slog.LevelDebug, "testcontainers", slog.String("line", line))
}
