package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Fetch reads what an epoch needs of the stored state as of the watermark, and the database's
// clock, in one round trip; with empty needs the clock alone. It may run while an epoch is in its
// commit: it sees all of that epoch or nothing.
//
// A range's rows are cut after Needs.DueMax only between two horizons, so that each call gets
// further; rows that share a horizon come together.
func (h *Shard) Fetch(
	ctx context.Context, needs stream.Needs, watermark stream.Micros,
) (found stream.Found, clock stream.Micros, err error) {
	err = h.store.retry(ctx, func() error {
		found, clock, err = h.fetch(ctx, &needs, watermark)
		return err
	})
	if err != nil {
		return found, 0, fmt.Errorf("fetch state of shard %d: %w", h.shard, err)
	}
	return found, clock, nil
}

func (h *Shard) fetch(
	ctx context.Context, needs *stream.Needs, watermark stream.Micros,
) (found stream.Found, clock stream.Micros, err error) {
	conn, err := h.store.pool.Acquire(ctx)
	if err != nil {
		return found, 0, err
	}
	defer conn.Release()
	batch := []statement{{name: "clock", sql: h.store.sql("clock")}}
	if !needs.Empty() {
		batch = append(batch, h.encodeNeeds(needs, watermark))
	}
	for _, r := range needs.Due {
		found.DueTo = append(found.DueTo, r.To)
	}
	d := decoder{shard: h}
	err = runBatch(ctx, conn.Conn().PgConn(), batch, map[int]reader{
		0: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				clock = readTime(rows.Values()[1])
			}
			return nil
		},
		1: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				d.fetched(rows.Values(), needs, &found)
			}
			return nil
		},
	})
	return found, clock, errors.Join(err, d.damaged())
}

func (h *Shard) encodeNeeds(needs *stream.Needs, watermark stream.Micros) statement {
	s := h.statement("fetch")
	a := &s.args
	a.time(watermark)
	addEvents(a, eventIDs(needs.IDs))
	array(a, textArray, needs.Keys, func(b []byte, k *string) []byte { return appendText(b, *k) })
	type row = stream.Range
	array(a, timeArray, needs.Due, func(b []byte, r *row) []byte { return appendTime(b, r.From) })
	array(a, timeArray, needs.Due, func(b []byte, r *row) []byte { return appendTime(b, r.To) })
	a.int8(int64(needs.DueMax))
	addEvents(a, eventIDs(needs.Results))
	var keeps []string
	for side, kept := range needs.Keeps {
		if kept {
			keeps = append(keeps, stream.Side(side).String())
		}
	}
	array(a, textArray, keeps, func(b []byte, s *string) []byte { return appendText(b, *s) })
	return s
}

// eventID names an event.
type eventID struct {
	side stream.Side
	id   string
}

// eventIDs names events by their ids by side.
func eventIDs(ids [2][]string) []eventID {
	var events []eventID
	for side := range ids {
		for _, id := range ids[side] {
			events = append(events, eventID{stream.Side(side), id})
		}
	}
	return events
}

func addEvents(a *args, events []eventID) {
	array(a, textArray, events, func(b []byte, e *eventID) []byte {
		return appendText(b, e.side.String())
	})
	array(a, textArray, events, func(b []byte, e *eventID) []byte { return appendText(b, e.id) })
}
