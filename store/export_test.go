package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Recycle gives the streams of an epoch back that is not committed.
func (e *Epoch) Recycle() { e.recycle() }

// Load reads all live rows as of the watermark, and their results as Fetch gives them.
func (h *Shard) Load(ctx context.Context, watermark stream.Micros) (stream.Found, error) {
	rows, err := load(ctx, h, h.loadRows(watermark), loadedRow)
	if err != nil {
		return stream.Found{}, fmt.Errorf("load state of shard %d: %w", h.shard, err)
	}
	var needs stream.Needs
	for i := range rows {
		needs.Results[rows[i].Side] = append(needs.Results[rows[i].Side], rows[i].ID)
	}
	found, _, err := h.Fetch(ctx, needs, watermark)
	found.Rows = rows
	return found, err
}

func loadedRow(d *decoder, v [][]byte) stream.BufferRow { return d.row(v[:12], v[12]) }

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
