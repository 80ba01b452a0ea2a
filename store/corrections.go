package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// OpenCorrection is an event that waits for a rebuild.
type OpenCorrection struct {
	Shard   int32
	Epoch   int64
	Ordinal int32
	stream.Partition
	Position string
	// Time is its event time, if it has one.
	Time    stream.Micros
	HasTime bool
	// Affected are the event times whose results it can touch.
	Affected stream.Range
	// Held tells whether the generation has events of the same id, and HeldTimes from when to when,
	// both included, they are.
	Held      bool
	HeldTimes stream.Range
}

// Corrections gives the open corrections of a generation.
func (s *Store) Corrections(ctx context.Context, generation int32) (list []OpenCorrection, err error) {
	err = s.retry(ctx, func() error {
		list, err = s.corrections(ctx, s.pool, generation)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the corrections of generation %d: %w", generation, err)
	}
	return list, nil
}

func (s *Store) corrections(
	ctx context.Context, q asker, generation int32,
) ([]OpenCorrection, error) {
	rows, err := q.Query(ctx, s.sql("generation_corrections"), generation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c OpenCorrection, err error) {
		var side string
		var at, first, last *micros
		err = row.Scan(&c.Shard, &c.Epoch, &c.Ordinal, &side, &c.Source, &c.Number, &c.Position, &at,
			(*micros)(&c.Affected.From), (*micros)(&c.Affected.To), &first, &last)
		if err != nil {
			return c, err
		}
		if at != nil {
			c.Time, c.HasTime = stream.Micros(*at), true
		}
		if first != nil {
			c.Held = true
			c.HeldTimes = stream.Range{From: stream.Micros(*first), To: stream.Micros(*last)}
		}
		c.Side, err = stream.ParseSide(side)
		return c, err
	})
}

// resolve marks what the candidate has settled, and takes over what was released. Where a generation
// serves again that did not know them, what the other had settled is open again.
func (t *promotion) resolve(ctx context.Context) error {
	list, err := t.store.corrections(ctx, t.tx, t.base.ID)
	if err != nil {
		return err
	}
	if list, err = t.settled(ctx, list); err != nil {
		return err
	}
	var shards, ordinals []int32
	var epochs []int64
	for i := range list {
		shards, ordinals = append(shards, list[i].Shard), append(ordinals, list[i].Ordinal)
		epochs = append(epochs, list[i].Epoch)
	}
	t.done.Resolved = int64(len(shards))
	if len(shards) > 0 {
		err := t.exec(ctx, "generation_resolve", t.base.ID, t.candidate.ID, shards, epochs, ordinals)
		if err != nil {
			return err
		}
	}
	if t.candidate.Kind == Interval {
		return nil
	}
	if err := t.exec(ctx, "generation_reopen", t.candidate.ID, t.base.ID); err != nil {
		return err
	}
	return t.exec(ctx, "generation_releases", t.base.ID, t.candidate.ID)
}

// settled gives those of a list of corrections that the candidate has settled.
func (t *promotion) settled(
	ctx context.Context, list []OpenCorrection,
) (settled []OpenCorrection, err error) {
	if t.Settles == nil || t.candidate.Base != t.base.ID {
		return nil, nil
	}
	type record struct {
		stream.Partition
		position string
	}
	open := map[record]bool{}
	for i := range list {
		settles, err := t.Settles(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		if !settles {
			open[record{list[i].Partition, list[i].Position}] = true
		}
	}
	for i := range list {
		if !open[record{list[i].Partition, list[i].Position}] {
			settled = append(settled, list[i])
		}
	}
	return settled, nil
}
