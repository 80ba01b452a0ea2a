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
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
			report, err = h.verifyTx(ctx, tx, deep)
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

func (h *Shard) verifyTx(ctx context.Context, tx pgx.Tx, deep bool) (Report, error) {
	conn := tx.Conn().PgConn()
	q := func(ctx context.Context, s statement, reset func(), row func(v [][]byte)) error {
		reset()
		return readAll(ctx, conn, s, row)
	}
	retain := h.store.retain
	if deep {
		retain = 0
	}
	d, err := readHead(ctx, h, q, retain)
	if err != nil {
		return Report{}, err
	}
	d.strict = true
	if err := d.readKnown(ctx); err != nil {
		return Report{}, err
	}
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
	err := v.run("shard", func() (int64, error) {
		v.checkShard()
		return 1, nil
	})
	if err != nil {
		return err
	}
	err = v.run("manifests", func() (int64, error) {
		v.checkManifests()
		v.checkDiscarded(&v.found)
		return int64(len(v.history.all)), nil
	})
	if err != nil {
		return err
	}
	err = v.run("source offsets", func() (int64, error) {
		return int64(len(v.offsets)), v.checkOffsets(ctx)
	})
	if err != nil {
		return err
	}
	err = v.run("live buffer rows", func() (int64, error) { return v.liveRows(ctx, &v.found, nil) })
	if err != nil {
		return err
	}
	window := v.window()
	err = v.run("results and transitions", func() (int64, error) {
		rows, transitions, err := v.results(ctx, window, &v.found, nil)
		return rows + transitions, err
	})
	if err != nil {
		return err
	}
	return v.run("corrections and quarantine", func() (int64, error) {
		return v.aside(ctx, window, &v.found)
	})
}
