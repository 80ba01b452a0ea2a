package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Report is what Verify looked at, and what it found damaged.
type Report struct {
	Generation, Shard int32
	// Epoch is the newest one that counts, by its manifest.
	Epoch     int64
	Watermark stream.Micros
	Checks    []Check
	Damage    []Damage
}

// Check is one thing that Verify compared.
type Check struct {
	Name string
	// Rows is how many rows were looked at, Damaged how many of them, or rows missing from them,
	// this check was the first to name.
	Rows    int64
	Damaged int
}

// Verify compares what is stored of a shard with what was written, and its tables with each other,
// as of one moment. It changes nothing and may run beside a worker. It looks at what the state
// depends on; deep at everything there is, of every epoch.
func (s *Store) Verify(
	ctx context.Context, generation, shard int32, deep bool,
) (report Report, err error) {
	h := &Shard{store: s, generation: generation, shard: shard}
	err = s.retry(ctx, func() error {
		return h.snapshot(ctx, func(q query) (err error) {
			report, err = h.verify(ctx, q, deep)
			return err
		})
	})
	if err != nil {
		return report, fmt.Errorf("verify shard %d of generation %d: %w", shard, generation, err)
	}
	return report, nil
}

// verification runs checks and keeps the record of them.
type verification struct {
	*head
	checks []Check
}

func (v *verification) run(name string, do func() (rows int64, err error)) error {
	before := len(v.found.list)
	rows, err := do()
	if err != nil {
		return err
	}
	v.checks = append(v.checks, Check{name, rows, len(v.found.list) - before})
	return nil
}

// snapshot gives do a query whose answers are all of one moment.
func (h *Shard) snapshot(ctx context.Context, do func(query) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, h.store.pool, options, func(tx pgx.Tx) error {
		if err := h.store.planScans(ctx, tx); err != nil {
			return err
		}
		conn := tx.Conn().PgConn()
		return do(func(ctx context.Context, s statement, reset func(), row func(v [][]byte)) error {
			reset()
			return readAll(ctx, conn, s, row)
		})
	})
}

// planScans has the statements of a transaction planned as those that compare whole tables.
func (s *Store) planScans(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, s.sql("scan_settings")); err != nil {
		return fmt.Errorf("set how whole tables are compared: %w", err)
	}
	return nil
}

func (h *Shard) verify(ctx context.Context, q query, deep bool) (Report, error) {
	retain := h.store.retain
	if deep {
		retain = 0
	}
	d, err := readHead(ctx, h, q, retain)
	if err != nil {
		return Report{}, err
	}
	d.strict = true
	v := &verification{head: d}
	if err := v.all(ctx, deep); err != nil {
		return Report{}, err
	}
	d.forgetKnown()
	return Report{
		Generation: h.generation, Shard: h.shard, Epoch: d.tip().epoch, Watermark: d.tip().after,
		Checks: v.checks, Damage: d.found.damage(),
	}, nil
}

func (v *verification) all(ctx context.Context, deep bool) error {
	checks := []struct {
		name string
		do   func() (int64, error)
	}{
		{"shard", func() (int64, error) {
			v.checkShard()
			return 1, nil
		}},
		{"manifests", func() (int64, error) {
			v.checkManifests()
			v.checkDiscarded(&v.found)
			return int64(len(v.history.all)), nil
		}},
		{"source offsets", func() (int64, error) {
			return int64(len(v.offsets)), v.checkOffsets(ctx)
		}},
		{"buffer", func() (int64, error) { return v.buffer(ctx, deep) }},
		{"results and transitions", func() (int64, error) {
			if deep {
				return v.everyResult(ctx)
			}
			rows, transitions, err := v.results(ctx, Thorough, v.window(), &v.found)
			return rows + transitions, err
		}},
		{"corrections and quarantine", func() (int64, error) {
			if deep {
				return v.aside(ctx, 0, &v.found)
			}
			return v.aside(ctx, v.window(), &v.found)
		}},
	}
	for _, c := range checks {
		if err := v.run(c.name, c.do); err != nil {
			return err
		}
	}
	for _, c := range crossChecks {
		err := v.run(c.name, func() (int64, error) { return 0, v.cross(ctx, c.statement, deep) })
		if err != nil {
			return err
		}
	}
	return nil
}

// buffer checks the live rows; where something is wrong with them, and where everything is to be
// looked at, also the buffer as of each epoch, which tells which rows are meant.
func (v *verification) buffer(ctx context.Context, deep bool) (int64, error) {
	var live findings
	rows, err := v.liveRows(ctx, &live, nil)
	if err != nil || live.empty() && !deep {
		return rows, err
	}
	before := len(v.found.list)
	all, err := v.everyBuffer(ctx)
	if len(v.found.list) == before {
		v.found.merge(&live)
	}
	return all, err
}
