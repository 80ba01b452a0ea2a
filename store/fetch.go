package store

import (
	"context"
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
	var d decoder
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
	return found, clock, err
}

func (h *Shard) encodeNeeds(needs *stream.Needs, watermark stream.Micros) statement {
	s := h.statement("fetch")
	a := &s.args
	a.time(watermark)
	var events []eventID
	for side, ids := range needs.IDs {
		for _, id := range ids {
			events = append(events, eventID{stream.Side(side), id})
		}
	}
	addEvents(a, events)
	array(a, textArray, needs.Keys, func(b []byte, k *string) []byte { return appendText(b, *k) })
	type row = stream.Range
	array(a, timeArray, needs.Due, func(b []byte, r *row) []byte { return appendTime(b, r.From) })
	array(a, timeArray, needs.Due, func(b []byte, r *row) []byte { return appendTime(b, r.To) })
	a.int8(int64(needs.DueMax))
	return s
}

// eventID names an event.
type eventID struct {
	side stream.Side
	id   string
}

func addEvents(a *args, events []eventID) {
	array(a, textArray, events, func(b []byte, e *eventID) []byte {
		return appendText(b, e.side.String())
	})
	array(a, textArray, events, func(b []byte, e *eventID) []byte { return appendText(b, e.id) })
}

// decoder turns rows into values. It keeps what many rows have in common.
type decoder struct {
	buf     []byte
	sources map[string]string
}

// fetched takes one row of the statement fetch.
func (d *decoder) fetched(v [][]byte, needs *stream.Needs, found *stream.Found) {
	switch part, rest := string(v[0]), v[1:]; part {
	case "row":
		found.Rows = append(found.Rows, d.row(rest))
	case "result":
		found.Results = append(found.Results, d.result(rest[:2], rest[12:]))
	case "due":
		last, count, number := readTime(v[2]), readInt8(v[5]), readInt4(v[10])
		if count >= int64(needs.DueMax) {
			to := &found.DueTo[number-1]
			*to = min(*to, last+1)
		}
	}
}

// row takes the columns key, horizon, side, id, revision, event_time, deleted, attributes, source,
// partition, position, added_epoch.
func (d *decoder) row(v [][]byte) stream.BufferRow {
	var t texts
	t, d.buf = newTexts(d.buf, v[0], v[3], v[7], v[10])
	r := stream.BufferRow{
		Side:    readSide(v[2]),
		Horizon: readTime(v[1]),
		Source:  d.source(v[8]),
		Number:  readInt4(v[9]),
		Event: stream.Event{
			Key: t.next(v[0]), ID: t.next(v[3]), Attributes: t.next(v[7]),
			Revision: readInt8(v[4]), Time: readTime(v[5]), HasTime: v[5] != nil,
			Deleted: readBool(v[6]),
		},
		AddedEpoch: readInt8(v[11]),
	}
	r.Position = t.next(v[10])
	return r
}

// result takes the columns key, horizon; match_id, kind, status, left_id, left_revision, right_id,
// right_revision, left_time, right_time, verdict, differences.
func (d *decoder) result(head, v [][]byte) stream.Result {
	var t texts
	t, d.buf = newTexts(d.buf, head[0], v[3], v[5], v[10])
	r := stream.Result{
		Key:     t.next(head[0]),
		Horizon: readTime(head[1]),
		Kind:    kindOf(v[1]),
		Status:  statusOf(v[2]),
		Verdict: verdictOf(v[9]),
		Left:    stream.Member{ID: t.next(v[3]), Revision: readInt8(v[4]), Time: readTime(v[7])},
		Right:   stream.Member{ID: t.next(v[5]), Revision: readInt8(v[6]), Time: readTime(v[8])},
	}
	copy(r.MatchID[:], v[0])
	r.Differences = t.next(v[10])
	return r
}

// source gives one string for all rows of a source.
func (d *decoder) source(v []byte) string {
	if name, ok := d.sources[string(v)]; ok {
		return name
	}
	if d.sources == nil {
		d.sources = map[string]string{}
	}
	name := string(v)
	d.sources[name] = name
	return name
}

func kindOf(v []byte) stream.Kind {
	switch string(v) {
	case string(stream.Pair):
		return stream.Pair
	case string(stream.LeftOnly):
		return stream.LeftOnly
	}
	return stream.RightOnly
}

func statusOf(v []byte) stream.Status {
	switch string(v) {
	case string(stream.Matched):
		return stream.Matched
	case string(stream.Provisional):
		return stream.Provisional
	}
	return stream.Final
}

func verdictOf(v []byte) string {
	switch string(v) {
	case "agree":
		return "agree"
	case "differ":
		return "differ"
	}
	return ""
}
