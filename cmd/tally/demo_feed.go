package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/workload"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// The demo's time runs in slices: what arrives in one is inserted, then there is a pause, so that
// many epochs see it come.
const (
	feedSlices = 150
	feedPause  = 25 * time.Millisecond
)

// feed inserts both sides' events into their tables as they arrive, and gives their number.
func feed(ctx context.Context, conn *pgx.Conn, w workload.Config) (rows int64, err error) {
	sides := []*workload.Stream{workload.New(w, stream.Left), workload.New(w, stream.Right)}
	now := stream.MicrosOf(w.Start)
	slice := w.Span()/feedSlices + time.Microsecond
	for more := true; more; {
		now, more = now.Add(slice), false
		for _, side := range sides {
			copied, left, err := workload.CopyNext(ctx, conn, shopSchema, side, now)
			if err != nil {
				return rows, err
			}
			rows += copied
			more = more || left
		}
		select {
		case <-time.After(feedPause):
		case <-ctx.Done():
			return rows, ctx.Err()
		}
	}
	return rows, nil
}
