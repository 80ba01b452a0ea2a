package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// ReleasedRow is a quarantined record that was released to be read again.
type ReleasedRow struct {
	// Seq is the number of its release on its side of the generation, from 1, without gaps.
	Seq int64
	// Raw is the repaired record, or the one that was set aside when none was given.
	Raw []byte
	// Source, Number and Position say where it was read first.
	Source   string
	Number   int32
	Position string
	// Shard, Epoch and Ordinal name it in the quarantine.
	Shard   int32
	Epoch   int64
	Ordinal int32
}

// Released gives up to limit records of a side released after the number afterSeq, in the order of
// their release, of all shards: each shard takes those whose key it owns. Those that were read again already are among them, so that a position can be read
// twice.
func (s *Store) Released(
	ctx context.Context, generation int32, side stream.Side, afterSeq int64, limit int,
) ([]ReleasedRow, error) {
	var list []ReleasedRow
	err := s.retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, s.sql("released"),
			generation, side.String(), afterSeq, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ReleasedRow])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read released records of generation %d: %w", generation, err)
	}
	return list, nil
}

// Release releases an open record of the quarantine, to be read again as repaired, or as it was
// when repaired is nil. It returns ErrNotOpen when there is no such record, or it was released.
func (s *Store) Release(
	ctx context.Context, generation, shard int32, epoch int64, ordinal int32, repaired []byte,
) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return s.releaseTx(ctx, tx, generation, shard, epoch, ordinal, repaired)
	})
	if err != nil {
		return fmt.Errorf("release quarantined record %d-%d-%d: %w", shard, epoch, ordinal, err)
	}
	return nil
}

func (s *Store) releaseTx(
	ctx context.Context, tx pgx.Tx,
	generation, shard int32, epoch int64, ordinal int32, repaired []byte,
) error {
	// One row for the releases of all shards, which are numbered together.
	if _, err := tx.Exec(ctx, s.sql("lock_shard"), generation, 0); err != nil {
		return fmt.Errorf("lock shard 0: %w", err)
	}
	var seq int64
	row := tx.QueryRow(ctx, s.sql("release"), generation, shard, epoch, ordinal, repaired)
	err := row.Scan(&seq)
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var status string
	row = tx.QueryRow(ctx, s.sql("quarantine_status"), generation, shard, epoch, ordinal)
	err = row.Scan(&status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: there is none of this name", ErrNotOpen)
	case err != nil:
		return fmt.Errorf("look for the record: %w", err)
	}
	return fmt.Errorf("%w: it is %s already", ErrNotOpen, status)
}
