package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Load reads all live rows as of the watermark and their results, as Fetch would give them. It
// reads on two connections at once, so no epoch may be in its commit.
func (h *Shard) Load(ctx context.Context, watermark stream.Micros) (stream.Found, error) {
	var found stream.Found
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		found.Rows, err = load(both, h, h.loading("load_rows", watermark), loadedRow)
		return err
	})
	group.Go(func() (err error) {
		s := h.loading("load_results", watermark)
		s.args.int8(always)
		found.Results, err = load(both, h, s, loadedResult)
		return err
	})
	err := group.Wait()
	if err == nil {
		err = h.loadGone(ctx, watermark, &found)
	}
	if err != nil {
		return stream.Found{}, fmt.Errorf("load state of shard %d: %w", h.shard, err)
	}
	return found, nil
}

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
	last := []byte{}
	for {
		rows, err := h.store.pool.Query(ctx, h.store.sql("result_ids"), h.generation, h.shard, last)
		if err != nil {
			return fmt.Errorf("read the ids of results of shard %d: %w", h.shard, err)
		}
		var id []byte
		var left, right *string
		var status stream.Status
		tag, err := pgx.ForEachRow(rows, []any{&id, &left, &right, &status}, func() error {
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

// loadGone adds the other results of partners that have left the buffer.
func (h *Shard) loadGone(ctx context.Context, watermark stream.Micros, found *stream.Found) error {
	var held [2]map[string]struct{}
	for side := range held {
		held[side] = make(map[string]struct{}, len(found.Rows))
	}
	for i := range found.Rows {
		held[found.Rows[i].Side][found.Rows[i].ID] = struct{}{}
	}
	var gone []eventID
	note := func(side stream.Side, id string) {
		if _, known := held[side][id]; !known && id != "" {
			held[side][id] = struct{}{}
			gone = append(gone, eventID{side, id})
		}
	}
	for i := range found.Results {
		note(stream.Left, found.Results[i].Left.ID)
		note(stream.Right, found.Results[i].Right.ID)
	}
	if len(gone) == 0 {
		return nil
	}
	s := h.loading("load_gone", watermark)
	addEvents(&s.args, gone)
	results, err := load(ctx, h, s, loadedResult)
	found.Results = append(found.Results, results...)
	return err
}

func (h *Shard) loading(name string, watermark stream.Micros) statement {
	s := h.statement(name)
	s.args.time(watermark)
	return s
}

func loadedRow(d *decoder, v [][]byte) stream.BufferRow { return d.row(v[:12], v[12]) }

func loadedResult(d *decoder, v [][]byte) stream.Result { return d.result(v[:2], v[2:]) }

// load runs one statement and decodes its rows.
func load[T any](
	ctx context.Context, h *Shard, s statement, decode func(*decoder, [][]byte) T,
) (list []T, err error) {
	err = h.store.retry(ctx, func() error {
		conn, err := h.store.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		list = nil
		d := decoder{shard: h}
		err = runBatch(ctx, conn.Conn().PgConn(), []statement{s}, map[int]reader{
			0: func(rows *pgconn.ResultReader) error {
				for rows.NextRow() {
					list = append(list, decode(&d, rows.Values()))
				}
				return nil
			},
		})
		return errors.Join(err, d.damaged())
	})
	return list, err
}
