package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// contender is one of those that take turns, with its figures of each round.
type contender struct {
	measure   func(context.Context) (took time.Duration, wal int64, err error)
	perSecond []float64
	wal       []float64 // bytes a record
}

// rounds lets the contenders take turns.
func (b *bench) rounds(ctx context.Context) (err error) {
	first, err := b.endToEnd(ctx, "run", asIs)
	if err != nil {
		return err
	}
	b.report.first = first
	b.report.Records, b.report.Epochs = b.records, first.epochs
	b.report.tally.add(b, first.took, first.wal)
	turns := []*contender{&b.report.tally}
	b.report.tally.measure = b.again
	if b.wants(PartFloor) {
		f, err := newFloor(ctx, b, first)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.close()) }()
		b.report.floor.measure = f.run
		turns = append(turns, &b.report.floor)
	}
	if b.wants(PartSQL) {
		h, err := newHandwritten(ctx, b, first)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.close()) }()
		b.report.sql.measure = h.measure
		turns = append(turns, &b.report.sql)
	}
	return b.takeTurns(ctx, turns)
}

// takeTurns lets each contender run once a round, in an order that is reversed every round. The
// first run end to end has been.
func (b *bench) takeTurns(ctx context.Context, turns []*contender) error {
	for round := range b.Rounds {
		for _, c := range turns {
			if len(c.perSecond) > round {
				continue
			}
			took, wal, err := c.measure(ctx)
			if err != nil {
				return err
			}
			c.add(b, took, wal)
		}
		slices.Reverse(turns)
	}
	return nil
}

func (c *contender) add(b *bench, took time.Duration, wal int64) {
	c.perSecond = append(c.perSecond, b.perSecond(took))
	c.wal = append(c.wal, float64(wal)/float64(b.records))
}

// again is a further run end to end.
func (b *bench) again(ctx context.Context) (took time.Duration, wal int64, err error) {
	r, err := b.endToEnd(ctx, "again", asIs)
	if err != nil {
		return 0, 0, err
	}
	first := b.report.first
	first.cycles = append(first.cycles, r.cycles...)
	first.transactions = append(first.transactions, r.transactions...)
	first.memory = max(first.memory, r.memory)
	return r.took, r.wal, b.db.dropSchema(ctx, r.schema)
}

// smallCache runs with a cache of a tenth of the state.
func (b *bench) smallCache(ctx context.Context) error {
	if !b.wants(PartState) {
		return nil
	}
	rows := max(1, int(b.report.first.highwater/10))
	return b.compare(ctx, "state", &b.report.small,
		func(_ context.Context, r *run, _ *store.Store) error {
			r.config.State.CacheRows = rows
			return nil
		})
}

// withStored runs beside results of long ago.
func (b *bench) withStored(ctx context.Context) error {
	if !b.wants(PartStored) || b.Stored == 0 {
		return nil
	}
	return b.compare(ctx, "stored", &b.report.stored,
		func(ctx context.Context, r *run, s *store.Store) error {
			return b.fill(ctx, r, s)
		})
}

// compare alternates a run that is different with one that is as usual, and keeps both.
func (b *bench) compare(
	ctx context.Context, what string, into *comparison,
	adapt func(context.Context, *run, *store.Store) error,
) error {
	for range b.Rounds {
		for _, turn := range []struct {
			adapt func(context.Context, *run, *store.Store) error
			into  *[]float64
		}{{adapt, &into.other}, {asIs, &into.usual}} {
			r, err := b.endToEnd(ctx, what, turn.adapt)
			if err != nil {
				return err
			}
			*turn.into = append(*turn.into, b.perSecond(r.took))
			if err := b.db.dropSchema(ctx, r.schema); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill stores results of long ago in the generation that the run will find.
func (b *bench) fill(ctx context.Context, r *run, s *store.Store) error {
	_, err := s.Register(ctx, store.Registration{
		Name: r.config.Name, RuleVersion: string(r.config.Rule.Version),
		Rule: []byte(r.config.RuleJSON()), Shards: r.config.Shards,
	})
	if err != nil {
		return err
	}
	b.Logger.Info("storing results of long ago", "results", b.Stored)
	rows, err := b.db.Query(ctx, render("stored_indexes", r.schema))
	if err != nil {
		return fmt.Errorf("list the indexes of the results: %w", err)
	}
	type index struct{ Remove, Make string }
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByName[index])
	if err != nil {
		return fmt.Errorf("list the indexes of the results: %w", err)
	}
	for _, x := range indexes {
		if _, err := b.db.Exec(ctx, x.Remove); err != nil {
			return fmt.Errorf("%s: %w", x.Remove, err)
		}
	}
	if _, err := b.db.Exec(ctx, render("stored", r.schema), b.Stored); err != nil {
		return fmt.Errorf("store results of long ago: %w", err)
	}
	for _, x := range indexes {
		if _, err := b.db.Exec(ctx, x.Make); err != nil {
			return fmt.Errorf("%s: %w", x.Make, err)
		}
	}
	return b.db.do(ctx, "stored_vacuum", r.schema)
}

// filePosition gives how many bytes of a file were read; false for another source.
func filePosition(p stream.Progress) (position int64, ok bool) {
	if p.Source == quarantineSource || p.To == "" {
		return 0, false
	}
	position, err := parsePosition(p.To)
	return position, err == nil
}

func parsePosition(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }
