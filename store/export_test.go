package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Streams gives the COPY streams of an epoch: buffer, match, transition.
func (e *Epoch) Streams() [3][]byte {
	return [3][]byte{e.copies.buffer, e.copies.match, e.copies.transition}
}

// Recycle gives the streams of an epoch back that is not committed.
func (e *Epoch) Recycle() { e.recycle() }

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
