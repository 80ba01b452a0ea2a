package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Load reads all live rows as of the watermark and their results, as Fetch would give them. It
// reads on two connections at once, so no epoch may be in its commit.
func (h *Shard) Load(ctx context.Context, watermark stream.Micros) (stream.Found, error) {
	var found stream.Found
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return h.loadPart(ctx, "load_rows", watermark, func() func([][]byte) {
			found.Rows = nil
			var d decoder
			return func(v [][]byte) { found.Rows = append(found.Rows, d.row(v)) }
		})
	})
	group.Go(func() error {
		return h.loadPart(ctx, "load_results", watermark, func() func([][]byte) {
			found.Results = nil
			var d decoder
			return func(v [][]byte) { found.Results = append(found.Results, d.result(v[:2], v[2:])) }
		})
	})
	if err := group.Wait(); err != nil {
		return stream.Found{}, fmt.Errorf("load state of shard %d: %w", h.shard, err)
	}
	return found, nil
}

// loadPart runs a statement and hands each row to what start gives; start is called anew when the
// statement is tried again.
func (h *Shard) loadPart(
	ctx context.Context, name string, watermark stream.Micros, start func() func([][]byte),
) error {
	s := h.statement(name)
	s.args.time(watermark)
	return h.store.retry(ctx, func() error {
		conn, err := h.store.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		take := start()
		return runBatch(ctx, conn.Conn().PgConn(), []statement{s}, map[int]reader{
			0: func(rows *pgconn.ResultReader) error {
				for rows.NextRow() {
					take(rows.Values())
				}
				return nil
			},
		})
	})
}
