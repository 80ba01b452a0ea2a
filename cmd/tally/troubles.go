package main

import (
	"context"
	"log/slog"

	"github.com/tallystick/tallystick/store"
)

// watch makes the log tell what the store outlasts.
func (a *app) watch(config *store.Config) {
	config.OnRetry = func(err error, attempt int) {
		if err == nil {
			a.logger.Info("going on", slog.Int("attempts", attempt))
			return
		}
		a.logger.Warn(store.TroubleOf(err), slog.Int("attempt", attempt), slog.Any("error", err))
	}
	config.OnUnreplicated = func(said string) {
		a.logger.Warn("an epoch was committed here and maybe not on the standbys: it can be lost "+
			"with this server, until a later commit reaches them", slog.String("server", said))
	}
}

// tellPooling says that transactions are pooled, which is no fault.
func (a *app) tellPooling(ctx context.Context, s *store.Store) error {
	pooling, err := s.Pooling(ctx)
	if err != nil {
		return err
	}
	if pooling != store.PoolsNothing {
		a.logger.Info("a pooler is in between", slog.String("it pools", string(pooling)+"s"))
	}
	return nil
}

// tellTroubles says in the end what was outlasted, if anything was.
func (a *app) tellTroubles(s *store.Store) {
	if t := s.Troubles(); t.Any() {
		a.logger.Warn("the run outlasted", slog.Int64("conflicts", t.Conflicts),
			slog.Int64("lost_connections", t.Lost), slog.Int64("disk_full", t.DiskFull),
			slog.Int64("unreplicated_commits", t.Unreplicated))
	}
}
