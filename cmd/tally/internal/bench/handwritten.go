package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/source/file"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// handwritten is the epoch that one would write in SQL without a tool: stage the batch by COPY, take
// it into the buffer with insert .. on conflict, join it with the buffer both ways, move the offsets
// and delete what the watermark has passed. It has the parsed events for free, and leaves out
// provisional rows, differences, manifests, quarantine and fencing.
type handwritten struct {
	bench  *bench
	run    *run
	events *spool
	batch  []byte
}

// newHandwritten parses the files and cuts the events into the epochs of a finished run.
func newHandwritten(ctx context.Context, b *bench, r *run) (*handwritten, error) {
	h := &handwritten{bench: b, run: r}
	if err := b.db.do(ctx, "events_table", r.schema); err != nil {
		return nil, err
	}
	number := int64(0)
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		rows := &eventRows{side: side, number: &number, bounds: r.bounds[side]}
		if err := h.parse(ctx, rows); err != nil {
			return nil, fmt.Errorf("parse the events for the epoch in SQL: %w", err)
		}
	}
	var err error
	h.events, err = newSpool(ctx, b.db.Conn, b.Dir, render("events_read", r.schema))
	if err != nil {
		return nil, err
	}
	return h, b.db.do(ctx, "events_drop", r.schema)
}

func (h *handwritten) parse(ctx context.Context, rows *eventRows) (err error) {
	source, err := file.New(file.Config{
		Side: rows.side, Path: h.bench.path(rows.side), Mapping: h.run.config.Mapping(rows.side),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := source.Open(ctx, "", ""); err != nil {
		return err
	}
	rows.read = func() ([]stream.Record, error) {
		const chunk = 1000
		records, _, err := source.Read(ctx, chunk)
		return records, err
	}
	_, err = h.bench.db.CopyFrom(ctx, pgx.Identifier{h.run.schema, "bench_events"}, []string{
		"number", "epoch", "side", "id", "revision", "key", "event_time", "attributes", "position",
	}, rows)
	return err
}

// eventRows feeds a COPY with the events of one side.
type eventRows struct {
	side   stream.Side
	read   func() ([]stream.Record, error)
	bounds map[int64]int64
	epoch  int64
	number *int64
	chunk  []stream.Record
	err    error
}

// Next implements pgx.CopyFromSource.
func (e *eventRows) Next() bool {
	if len(e.chunk) > 0 {
		e.chunk = e.chunk[1:]
	}
	if len(e.chunk) == 0 {
		e.chunk, e.err = e.read()
	}
	return e.err == nil && len(e.chunk) > 0
}

// Values implements pgx.CopyFromSource.
func (e *eventRows) Values() ([]any, error) {
	r := &e.chunk[0]
	if r.Reason != "" {
		return nil, fmt.Errorf("record up to byte %s is no event: %s", r.Position, r.Reason)
	}
	position, err := parsePosition(r.Position)
	if err != nil {
		return nil, err
	}
	for e.bounds[e.epoch] < position {
		e.epoch++
		if e.epoch > int64(len(e.bounds)) {
			return nil, fmt.Errorf("no epoch of the run has read byte %d", position)
		}
	}
	*e.number++
	v := &r.Event
	return []any{
		*e.number, e.epoch, e.side.String(), v.ID, v.Revision, v.Key, v.Time.Time(),
		v.Attributes, position,
	}, nil
}

// Err implements pgx.CopyFromSource.
func (e *eventRows) Err() error { return e.err }

func (h *handwritten) close() error { return h.events.close() }

// measure runs all epochs on fresh tables, checks the results and drops the tables. Only the
// transactions are timed.
func (h *handwritten) measure(ctx context.Context) (took time.Duration, wal int64, err error) {
	db := h.bench.db
	for _, name := range []string{"sql_tables", "sql_session"} {
		if err := db.do(ctx, name, h.run.schema); err != nil {
			return 0, 0, err
		}
	}
	db.settle(ctx)
	before, err := db.wal(ctx)
	if err != nil {
		return 0, 0, err
	}
	for epoch := int64(1); epoch <= h.run.epochs; epoch++ {
		if h.batch, err = h.events.load(epoch, h.batch); err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := h.epoch(ctx, epoch); err != nil {
			return 0, 0, fmt.Errorf("epoch %d in SQL: %w", epoch, err)
		}
		took += time.Since(began)
		// Statistics are as fresh as autovacuum keeps them, from the first epoch on.
		if epoch&(epoch-1) == 0 {
			if err := db.do(ctx, "sql_analyze", h.run.schema); err != nil {
				return 0, 0, err
			}
		}
	}
	after, err := db.wal(ctx)
	if err != nil {
		return 0, 0, err
	}
	h.bench.Logger.Info("epoch in SQL", "seconds", took.Seconds(),
		"records_per_second", h.bench.perSecond(took))
	if err := h.check(ctx); err != nil {
		return 0, 0, err
	}
	for _, name := range []string{"sql_drop", "sql_session_drop"} {
		if err := db.do(ctx, name, h.run.schema); err != nil {
			return 0, 0, err
		}
	}
	return took, after - before, nil
}

// epoch runs one epoch: the COPY, then everything else in one round trip.
func (h *handwritten) epoch(ctx context.Context, epoch int64) error {
	db, rule := h.bench.db, h.run.config.JoinRule()
	return pgx.BeginFunc(ctx, db.Conn, func(tx pgx.Tx) error {
		if h.batch != nil {
			sql := render("sql_stage", h.run.schema)
			if _, err := db.PgConn().CopyFrom(ctx, bytes.NewReader(h.batch), sql); err != nil {
				return err
			}
		}
		var batch pgx.Batch
		queue := func(name string, values ...any) { batch.Queue(render(name, h.run.schema), values...) }
		queue("sql_analyze_stage")
		queue("sql_1_accept", epoch, rule.After, rule.Lateness)
		queue("sql_analyze_news")
		queue("sql_2_supersede", epoch)
		queue("sql_3_join", epoch, rule.After, rule.Version)
		queue("sql_4_offsets", h.run.config.Left.OutOfOrderness.Std())
		queue("sql_5_expire", epoch, rule.Version)
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// check makes sure that the epochs in SQL published the same pairs and final rows as the run.
func (h *handwritten) check(ctx context.Context) error {
	ours, err := h.bench.db.results(ctx, "results_run", h.run.schema)
	if err != nil {
		return err
	}
	theirs, err := h.bench.db.results(ctx, "results_sql", h.run.schema)
	if err != nil {
		return err
	}
	if ours != theirs {
		return fmt.Errorf("%w: end to end %d pairs and %d final rows, in SQL %d and %d "+
			"(or others)", errDiffer, ours.Pairs, ours.Final, theirs.Pairs, theirs.Final)
	}
	h.bench.report.Results = ours
	return nil
}
