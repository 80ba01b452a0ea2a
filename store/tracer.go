package store

import (
	"context"
	"log/slog"
	"maps"

	"github.com/jackc/pgx/v5/tracelog"
)

// newTracer logs what pgx does at debug level. Failures are debug lines too: they are returned as
// errors, and whoever ends up with the error logs it.
func newTracer(logger *slog.Logger) *tracelog.TraceLog {
	logger = logger.With("service", "store")
	return &tracelog.TraceLog{
		LogLevel: tracelog.LogLevelDebug,
		Logger: tracelog.LoggerFunc(func(
			ctx context.Context, _ tracelog.LogLevel, message string, data map[string]any,
		) {
			if !logger.Enabled(ctx, slog.LevelDebug) {
				return
			}
			logger.LogAttrs(ctx, slog.LevelDebug, "pgx", slog.String("what", message),
				slog.Any("data", withoutValues(data)))
		}),
	}
}

// withoutValues leaves out the arguments: they are the user's data.
func withoutValues(data map[string]any) map[string]any {
	data = maps.Clone(data)
	delete(data, "args")
	return data
}
