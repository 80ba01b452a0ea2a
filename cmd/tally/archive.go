package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/store/archive"
)

// archivesOf opens the archive of the configuration; nil where it has none.
func archivesOf(c *config.Config, generation int32) (*reconcile.Archives, error) {
	if c.Archive.URL == "" {
		return nil, nil
	}
	a, err := archive.Open(c.Archive.URL.Reveal(), c.Archive.Keep)
	if err != nil {
		return nil, err
	}
	return &reconcile.Archives{Archive: a, Reconciliation: c.Name, Generation: generation}, nil
}

// upkeepOf gives what a run does beside the loop.
func upkeepOf(
	c *config.Config, s *store.Store, generation int32, logger *slog.Logger,
) (*reconcile.Upkeep, error) {
	archives, err := archivesOf(c, generation)
	if err != nil {
		return nil, err
	}
	return &reconcile.Upkeep{
		Store: s, Generation: generation, Shards: int32(c.Shards),
		Retain:  store.Retention{Epochs: c.Retain.Epochs, For: c.Retain.For.Std()},
		Archive: archives, Every: c.Archive.Every.Std(), Logger: logger,
	}, nil
}

// restoreArchive makes a shard what an archived snapshot says.
func (a *app) restoreArchive(
	ctx context.Context, c *config.Config, s *store.Store, generation int32, f restoreFlags,
) error {
	archives, err := archivesOf(c, generation)
	switch {
	case err != nil:
		return usageError(err)
	case archives == nil:
		return usageError(errors.New("--from-archive: the configuration has no archive.url"))
	}
	h, err := s.TakeToRestore(ctx, generation, f.shard, workerName())
	if err != nil {
		return err
	}
	epoch, err := archives.Restore(ctx, f.shard, h, f.toEpoch, nil, a.logger)
	outcome := "restored from the archive"
	if err != nil {
		outcome = err.Error()
	}
	if err := errors.Join(err, h.Leave(ctx, outcome)); err != nil {
		return err
	}
	a.printf("shard %d is what it was after epoch %d, by the archive; tally run goes on from there\n",
		f.shard, epoch)
	return nil
}
