package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Retention says how far back epochs stay restorable: whichever bound is reached first, but never
// less than the newest two.
type Retention struct {
	// Epochs is how many of the newest are retained; at least 2.
	Epochs int
	// For is how old they may be by the clock of the database.
	For time.Duration
}

// Purge deletes, step by step, the buffer rows of one shard that no retained epoch needs. Of all
// that is kept of an epoch these rows alone go: manifests, transitions and attempts stay.
//
// A row is needed by an epoch at which it is live. With O the oldest retained epoch and W its
// watermark, a row that was retired at or before O, or whose horizon is before W, is live neither
// at O nor at any epoch after it: along a chain watermarks don't go back, and a step back to an
// epoch since O brings only those rows back that were retired after it. So no fence and no lock is
// needed to delete such a row, however late, as long as nothing goes back behind O.
//
// That is what the column purged_epoch of the shard is for. It is set to O in a transaction of its
// own before the first row is deleted, under the lock of the shard's row, which a restore holds as
// well: one that came before has left O in the chain, or O is refused; one that comes after finds O
// there and refuses to go behind it. Only an archive goes further back. It writes all rows anew and
// sets purged_epoch to its own new epoch, so that a step of an earlier purge, which deletes in one
// snapshot and only where purged_epoch is still O, sees none of the new rows or has nothing to do.
//
// A step reads a range of the table's blocks, which needs neither an index nor a look-up for each
// row. It is a short transaction that touches no row an epoch writes. The first block is drawn at
// random, so that purges that are cut short get everywhere too.
type Purge struct {
	store             *Store
	generation, shard int32
	// Epoch is the oldest retained epoch.
	Epoch     int64
	watermark stream.Micros
	// Dead estimates how many rows are no longer needed since the last purge that was begun; Rows
	// how many the buffer has, all shards together.
	Dead, Rows int64
	// behind is the epoch that was purged behind before, 0 for none.
	behind int64
	// first is the block that the purge began with, next the one to go on with; after the last
	// block it goes on with block 0.
	blocks, first, next int64
	wrapped             bool
}

// purgeBlocks is how many blocks of the table one step reads: half a megabyte, some 2,000 rows.
const purgeBlocks = 64

// Purge finds what can be purged of a shard; nil when nothing can be. It writes nothing yet. It
// returns a *DamageError when the manifest of the oldest retained epoch is not what was written.
func (s *Store) Purge(
	ctx context.Context, generation, shard int32, retain Retention,
) (*Purge, error) {
	p := &Purge{store: s, generation: generation, shard: shard}
	found := false
	err := s.retry(ctx, func() (err error) {
		found, err = p.find(ctx, retain)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find what can be purged of shard %d: %w", shard, err)
	}
	// Before the first purge nothing can be left over from another one that was cut short.
	if !found || p.blocks == 0 || p.behind == 0 && p.Dead <= 0 {
		return nil, nil
	}
	p.first = rand.Int64N(p.blocks) / purgeBlocks * purgeBlocks
	p.next = p.first
	return p, nil
}

// OldestRestorable gives the oldest epoch of a shard that can be gone back to, 0 while all can. It
// only grows.
func (s *Store) OldestRestorable(ctx context.Context, generation, shard int32) (int64, error) {
	var epoch int64
	err := s.retry(ctx, func() error {
		row := s.pool.QueryRow(ctx, s.sql("purge_restorable"), generation, shard)
		err := row.Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoShard
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read how far back shard %d can go: %w", shard, err)
	}
	return epoch, nil
}

// Begin makes the oldest retained epoch the oldest that can be gone back to. It returns false when
// a restore or another purge makes this one pointless.
func (p *Purge) Begin(ctx context.Context) (may bool, err error) {
	lock, mark := p.statement("lock_shard"), p.statement("purge_mark")
	mark.args.int8(p.Epoch)
	mark.args.time(p.watermark)
	batch := []statement{
		{name: "begin", sql: "begin"}, lock, mark, {name: "commit", sql: "commit"},
	}
	err = p.run(ctx, batch, map[int]reader{2: func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			may = readBool(rows.Values()[0])
		}
		return nil
	}})
	if err != nil {
		return false, fmt.Errorf("purge shard %d behind epoch %d: %w", p.shard, p.Epoch, err)
	}
	return may, nil
}

// Step deletes what a few thousand rows of the table hold that can go, and tells how many those
// were and whether there is more to look at.
func (p *Purge) Step(ctx context.Context) (deleted int64, more bool, err error) {
	to := min(p.next+purgeBlocks, p.blocks)
	if p.wrapped {
		to = min(p.next+purgeBlocks, p.first)
	}
	step := p.statement("purge_step")
	step.args.int8(p.Epoch)
	step.args.time(p.watermark)
	step.args.int8(p.next)
	step.args.int8(to)
	current := false
	err = p.run(ctx, []statement{step}, map[int]reader{0: func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			deleted, current = readInt8(rows.Values()[0]), readBool(rows.Values()[1])
		}
		return nil
	}})
	if err != nil {
		return 0, false, fmt.Errorf("purge shard %d behind epoch %d: %w", p.shard, p.Epoch, err)
	}
	p.next = to
	if p.next == p.blocks && !p.wrapped {
		p.next, p.wrapped = 0, true
	}
	return deleted, current && (!p.wrapped || p.next < p.first), nil
}

func (p *Purge) statement(name string) statement {
	s := statement{name: name, sql: p.store.sql(name)}
	s.args.int4(p.generation)
	s.args.int4(p.shard)
	return s
}

// run sends statements that may be repeated.
func (p *Purge) run(ctx context.Context, batch []statement, readers map[int]reader) error {
	return p.store.retry(ctx, func() error {
		conn, err := p.store.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		err = p.store.run(ctx, conn.Conn().PgConn(), batch, readers)
		if err != nil && conn.Conn().PgConn().TxStatus() != 'I' {
			_ = conn.Conn().Close(ctx) // the pool opens another; it is broken, whatever this says
		}
		return err
	})
}

// find reads the oldest retained epoch; false when there is none yet.
func (p *Purge) find(ctx context.Context, retain Retention) (found bool, err error) {
	conn, err := p.store.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	oldest := p.statement("purge_oldest")
	oldest.args.int8(int64(max(retain.Epochs, 2)))
	oldest.args.int8(retain.For.Microseconds())
	err = runBatch(ctx, conn.Conn().PgConn(), []statement{oldest}, map[int]reader{
		0: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				found = true
				if err := p.read(rows.Values()); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return found, err
}

// read takes the row of purge_oldest. What it says of the oldest epoch decides what is deleted, so
// the digest has to be right.
func (p *Purge) read(v [][]byte) error {
	p.behind, p.Dead, p.Rows, p.blocks =
		readInt8(v[0]), readInt8(v[1]), readInt8(v[2]), readInt8(v[3])
	oldest := readManifest(v[4:])
	p.Epoch, p.watermark = oldest.epoch, oldest.after
	if oldest.intact() {
		return nil
	}
	return damageError([]Damage{{
		Table: "epoch", Row: fmt.Sprint(oldest.epoch),
		What: "its digest is not that of its columns; nothing is purged behind it",
	}})
}
