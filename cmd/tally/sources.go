package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/source/file"
	"github.com/tallystick/tallystick/reconcile/source/postgres"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// newSources builds the sources of both sides, left first, in the order of the file. Tables
// without a database of their own are read over the pool.
func newSources(c *config.Config, pool *pgxpool.Pool) ([]reconcile.Source, error) {
	var sources []reconcile.Source
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		for i, configured := range c.Sources(side) {
			source, err := newSource(c, side, configured, pool)
			if err != nil {
				return nil, usageError(fmt.Errorf("%s source %d: %w", side, i+1, err))
			}
			sources = append(sources, source)
		}
	}
	return sources, nil
}

func newSource(
	c *config.Config, side stream.Side, s config.Source, pool *pgxpool.Pool,
) (reconcile.Source, error) {
	if s.Type == config.TypeFile {
		return newFileSource(c, side, s)
	}
	configured := postgres.Config{
		Side:        side,
		Name:        s.Name,
		Table:       s.Table,
		Cursor:      s.Cursor,
		Transaction: s.Transaction,
		Consistency: s.Consistency,
		Mapping:     c.Mapping(side),
	}
	if s.Database == "" {
		configured.Pool = pool
	} else {
		configured.URL = s.Database.Reveal()
	}
	return postgres.New(configured)
}

func newFileSource(c *config.Config, side stream.Side, s config.Source) (reconcile.Source, error) {
	path := s.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir(), path)
	}
	configured := file.Config{
		Side: side, Name: s.Name, Path: path, Format: s.Format, Mapping: c.Mapping(side),
	}
	if s.Delimiter != "" {
		configured.Delimiter = s.Delimiter[0]
	}
	return file.New(configured)
}

// closeSources closes all of them and keeps the errors.
func closeSources(sources []reconcile.Source) error {
	var errs []error
	for _, s := range sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
