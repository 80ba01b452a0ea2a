package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// floor writes by COPY alone what a run made durable.
type floor struct {
	bench  *bench
	schema string
	epochs int64
	tables []floorTable
}

// floorTable is one table and what goes into it.
type floorTable struct {
	write string // the COPY
	rows  *spool
	batch []byte
}

// newFloor reads back the rows of a finished run, by the epoch that wrote them.
func newFloor(ctx context.Context, b *bench, r *run) (*floor, error) {
	f := &floor{bench: b, schema: r.schema, epochs: r.epochs}
	for _, table := range []string{"buffer", "match", "match_transition", "epoch"} {
		rows, err := newSpool(ctx, b.db.Conn, b.Dir, render("floor_read_"+table, r.schema))
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.tables = append(f.tables,
			floorTable{write: render("floor_write_"+table, r.schema), rows: rows})
	}
	return f, nil
}

func (f *floor) close() error {
	var errs []error
	for _, t := range f.tables {
		errs = append(errs, t.rows.close())
	}
	return errors.Join(errs...)
}

// run writes all epochs into fresh tables. Only the transactions are timed, not the reading of the
// rows from files.
func (f *floor) run(ctx context.Context) (took time.Duration, wal int64, err error) {
	db := f.bench.db
	if err := db.do(ctx, "floor_tables", f.schema); err != nil {
		return 0, 0, err
	}
	db.settle(ctx)
	before, err := db.wal(ctx)
	if err != nil {
		return 0, 0, err
	}
	for epoch := int64(1); epoch <= f.epochs; epoch++ {
		if err := f.load(epoch); err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := f.epoch(ctx); err != nil {
			return 0, 0, fmt.Errorf("write the rows of epoch %d by COPY: %w", epoch, err)
		}
		took += time.Since(began)
	}
	after, err := db.wal(ctx)
	if err != nil {
		return 0, 0, err
	}
	f.bench.Logger.Info("COPY floor", "seconds", took.Seconds(),
		"records_per_second", f.bench.perSecond(took))
	return took, after - before, db.do(ctx, "floor_drop", f.schema)
}

func (f *floor) load(epoch int64) (err error) {
	for i := range f.tables {
		t := &f.tables[i]
		if t.batch, err = t.rows.load(epoch, t.batch); err != nil {
			return err
		}
	}
	return nil
}

func (f *floor) epoch(ctx context.Context) error {
	conn := f.bench.db.PgConn()
	if _, err := conn.Exec(ctx, "begin").ReadAll(); err != nil {
		return err
	}
	for _, t := range f.tables {
		if t.batch == nil {
			continue
		}
		if _, err := conn.CopyFrom(ctx, bytes.NewReader(t.batch), t.write); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "commit").ReadAll()
	return err
}
