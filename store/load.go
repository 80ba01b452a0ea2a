package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Spill marks the live rows of the buffer so that Fetch finds them by key and by horizon, which it
// does not before: rows are written unmarked while the state fits into memory, since the indexes
// that serve such look-ups cost as much as all else in the buffer. It works in short steps, may be
// stopped and run again, and needs no fence: marking changes nothing but what can be found.
func (h *Shard) Spill(ctx context.Context, watermark stream.Micros) error {
	side, id, epoch := "", "", int64(0)
	for {
		err := h.store.retry(ctx, func() error {
			row := h.store.pool.QueryRow(ctx, h.store.sql("spill"), h.generation, h.shard,
				watermark.String(), side, id, epoch)
			return row.Scan(&side, &id, &epoch)
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("mark the buffer of shard %d as spilled: %w", h.shard, err)
		}
	}
}

// ResultIDs gives the members of every active result to yield, one after the other, in short
// statements: what is activated meanwhile may be missing.
func (h *Shard) ResultIDs(ctx context.Context, yield func(stream.Side, string)) error {
	bucket, last := firstKey.bucket, firstKey.id[:]
	for {
		rows, err := h.store.pool.Query(ctx, h.store.sql("result_ids"), h.generation, h.shard, bucket,
			last)
		if err != nil {
			return fmt.Errorf("read the ids of results of shard %d: %w", h.shard, err)
		}
		var id []byte
		var left, right *string
		var status stream.Status
		tag, err := pgx.ForEachRow(rows, []any{&bucket, &id, &left, &right, &status}, func() error {
			if status.Active() && left != nil {
				yield(stream.Left, *left)
			}
			if status.Active() && right != nil {
				yield(stream.Right, *right)
			}
			return nil
		})
		switch {
		case err != nil:
			return fmt.Errorf("read the ids of results of shard %d: %w", h.shard, err)
		case tag.RowsAffected() == 0:
			return nil
		}
		last = id
	}
}

// BufferNames gives the side, id and key of every row of the buffer to yield, as ResultIDs does: what is
// added meanwhile may be missing, and what has expired is among them.
func (h *Shard) BufferNames(
	ctx context.Context, yield func(side stream.Side, id, key string),
) error {
	var name, id, key string
	for {
		rows, err := h.store.pool.Query(ctx, h.store.sql("buffer_names"), h.generation, h.shard, name, id)
		if err != nil {
			return fmt.Errorf("read the ids of rows of shard %d: %w", h.shard, err)
		}
		tag, err := pgx.ForEachRow(rows, []any{&name, &id, &key}, func() error {
			side, err := stream.ParseSide(name)
			if err == nil {
				yield(side, id, key)
			}
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("read the ids of rows of shard %d: %w", h.shard, err)
		case tag.RowsAffected() == 0:
			return nil
		}
	}
}

// loadRows reads all live rows. The columns of types text and json come as text: the bytes are the
// same, and Postgres makes them a tenth faster.
func (h *Shard) loadRows(watermark stream.Micros) statement {
	const text, binary = 0, 1
	s := h.statement("load_rows")
	s.args.time(watermark)
	s.results = []int16{
		text, binary, text, text, binary, binary, binary, text, text, binary, text, binary, binary,
	}
	return s
}
