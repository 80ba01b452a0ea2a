package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// OpenSnapshot gives a snapshot from its beginning. It is called twice, and what it gives must fail
// before its end when it is not what was written.
type OpenSnapshot func(ctx context.Context) (io.ReadCloser, error)

// RestoreArchive makes the shard what a snapshot says, in one transaction, whatever state it is in,
// and gives the epoch that it went back to. It is called after Take, and before Restore.
//
// The rows of the buffer and the source offsets are replaced, as are the manifests that the
// snapshot has. Results are set to what it says: those missing are written again, those that differ
// put right, and those published since withdrawn. Where that changes the status of a result, or
// what happened since is undone, there is a transition with the reason restored. All later epochs
// are discarded, and one more is written of the kind restore, whose parent is the snapshot's:
// Restore then says which of the discarded ones are to be read again. The attempt keeps on record
// why.
//
// Errors, with nothing changed: ErrSnapshot when the snapshot is not one of this shard; ErrFenced.
func (h *Shard) RestoreArchive(
	ctx context.Context, open OpenSnapshot, why []Damage,
) (epoch int64, err error) {
	a, err := h.readSnapshot(ctx, open)
	if err == nil {
		err = h.raiseTokenAbove(ctx)
	}
	if err == nil {
		a.why = why
		err = h.toSnapshot(ctx, a, open)
	}
	if err != nil {
		return 0, fmt.Errorf("restore shard %d from an archive: %w", h.shard, err)
	}
	return a.tip.epoch, nil
}

// TakeToRestore is Take for a shard of which also the row may be missing; that is put back. It is for
// RestoreArchive.
func (s *Store) TakeToRestore(
	ctx context.Context, generation, shard int32, worker string,
) (*Shard, error) {
	if err := s.reinstate(ctx, generation, shard); err != nil {
		return nil, err
	}
	return s.Take(ctx, generation, shard, worker)
}

// archived is what is known of a snapshot that was read to its end.
type archived struct {
	tip *storedManifest
	// first is the epoch of its oldest manifest; chain holds those that count.
	first   int64
	chain   []int64
	offsets []stream.Progress
	// later holds the rows of results that changed while it was taken; they count.
	later map[resultKey][][]byte
	live  setDigest
	rows  int64
	// why is what was damaged.
	why []Damage
}

// readSnapshot reads all of a snapshot and checks that it is one of this shard.
func (h *Shard) readSnapshot(ctx context.Context, open OpenSnapshot) (*archived, error) {
	head, _, err := h.store.Stands(ctx, h.generation, h.shard)
	if err != nil {
		return nil, err
	}
	file, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	r, err := newSnapshotReader(file)
	if err != nil {
		return nil, err
	}
	if r.head != head {
		return nil, fmt.Errorf("%w: it is of %+v, the shard is %+v", ErrSnapshot, r.head, head)
	}
	a := &archived{later: map[resultKey][][]byte{}}
	parts := 0
	for {
		name, end, err := r.table()
		switch {
		case err != nil:
			return nil, err
		case end != nil:
			return a, errors.Join(r.drain(), a.check(end))
		}
		if name == partMatch {
			parts++
		}
		if err := a.read(r, name, parts); err != nil {
			return nil, err
		}
	}
}

// read takes one table; the first part of the results is only looked at.
func (a *archived) read(r *snapshotReader, name string, parts int) error {
	for {
		v, err := r.next()
		if err != nil || v == nil {
			return err
		}
		switch {
		case name == partMatch && parts > 1:
			a.later[archivedKey(v)] = cloneRow(v)
		case name == partManifest:
			m := readManifest(append(slices.Clone(v), []byte{1}))
			if a.first == 0 {
				a.first = m.epoch
			}
			if m.committed {
				a.tip = m
				a.chain = append(a.chain, m.epoch)
			}
		case name == partOffset:
			a.offsets = append(a.offsets, readOffset(v).Progress)
		case name == partBuffer:
			a.rows++
			a.live.add(hashArchivedRow(v))
		}
	}
}

func (a *archived) check(end *SnapshotEnd) error {
	switch {
	case a.tip == nil || a.tip.epoch != end.Epoch || !a.tip.intact():
		return fmt.Errorf("%w: its newest manifest is not that of epoch %d", ErrSnapshot, end.Epoch)
	case a.live != a.tip.live || a.rows != a.tip.counts[countBuffered]:
		return fmt.Errorf("%w: its buffer is not that of epoch %d", ErrSnapshot, end.Epoch)
	}
	return nil
}

func cloneRow(v [][]byte) [][]byte {
	row := make([][]byte, len(v))
	for i, value := range v {
		row[i] = bytes.Clone(value)
	}
	return row
}

// raiseTokenAbove makes the token the highest there is, where the row was set back by hand.
func (h *Shard) raiseTokenAbove(ctx context.Context) error {
	d := &head{shard: h, query: h.store.pooled()}
	if err := d.readShard(ctx); err != nil {
		return fmt.Errorf("read the shard's row: %w", err)
	}
	return h.raiseToken(ctx, d.tokenMax)
}

// toSnapshot runs the transaction until it is known to be committed.
func (h *Shard) toSnapshot(ctx context.Context, a *archived, open OpenSnapshot) error {
	e := &Epoch{delta: &stream.Delta{Epoch: h.epoch}, copies: &copies{}}
	err := h.store.retry(ctx, func() error {
		if h.unsettled {
			committed, err := h.settle(ctx, e)
			if committed || err != nil {
				return err
			}
		}
		conn, err := h.store.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		t := &archiveTx{Shard: h, archived: a, conn: conn.Conn().PgConn(), e: e}
		err = t.run(ctx, open)
		if err != nil {
			h.abort(ctx, conn, err)
		}
		if hasCode(err, codeDivisionByZero) {
			return ErrFenced
		}
		return err
	})
	if err != nil {
		return err
	}
	h.epoch, h.digest, h.live = e.delta.Epoch, e.digest, a.live
	return nil
}

// archiveTx is the transaction on one connection.
type archiveTx struct {
	*Shard
	*archived
	conn *pgconn.PgConn
	e    *Epoch
}

func (t *archiveTx) run(ctx context.Context, open OpenSnapshot) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	file, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	r, err := newSnapshotReader(file)
	if err != nil {
		return err
	}
	if err := t.tables(ctx, r); err != nil {
		return err
	}
	return t.finish(ctx)
}

// begin locks the shard, chooses the number of the new epoch and clears what will be replaced.
func (t *archiveTx) begin(ctx context.Context) error {
	next := t.statement("archive_next")
	next.args.int8(t.tip.epoch)
	const settings = "epoch_settings"
	d := &stream.Delta{WatermarkBefore: t.tip.after, WatermarkAfter: t.tip.after}
	err := t.store.run(ctx, t.conn, []statement{
		{name: "begin", sql: "begin"},
		{name: settings, sql: t.store.sql(settings)},
		t.statement("lock_shard"), next,
	}, map[int]reader{3: func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			d.Epoch, d.Clock = readInt8(rows.Values()[0]), readTime(rows.Values()[1])
		}
		return nil
	}})
	if err != nil {
		return err
	}
	d.Progress = t.offsets
	d.Counts.Buffered = t.archived.rows
	t.e.delta = d
	t.e.manifest = manifest{
		kind: kindRestore, live: t.archived.live, sources: describeSources(d.Progress),
		parent: t.tip.epoch,
	}
	copy(t.e.manifest.parentDigest[:], t.tip.digest)
	buffer, manifests := t.statement("archive_clear_buffer"), t.statement("archive_clear_manifests")
	buffer.args.int8(d.Epoch)
	manifests.args.int8(t.first)
	manifests.args.int8(t.tip.epoch)
	return t.store.run(ctx, t.conn, []statement{
		t.Shard.begin(t.e)[2], buffer, manifests, t.statement("archive_clear_offsets"),
	}, nil)
}

// tables writes what the snapshot has, table by table.
func (t *archiveTx) tables(ctx context.Context, r *snapshotReader) error {
	merged := false
	for {
		name, end, err := r.table()
		switch {
		case err != nil:
			return err
		case end != nil:
			return r.drain()
		case name == partMatch && !merged:
			merged = true
			err = t.mergeResults(ctx, r)
		case name == partManifest:
			err = t.copy(ctx, "archive_manifest_copy", r)
		case name == partBuffer:
			err = t.copy(ctx, "archive_buffer_copy", r)
		default: // it is known already
			for row := [][]byte{}; row != nil && err == nil; {
				row, err = r.next()
			}
		}
		if err != nil {
			return err
		}
	}
}

func (t *archiveTx) copy(ctx context.Context, name string, r *snapshotReader) error {
	rows := &copyRows{snapshot: r}
	err := t.store.step(ctx, name, func() error {
		_, err := t.conn.CopyFrom(ctx, rows, t.store.sql(name))
		return err
	})
	if err != nil {
		return markLost(t.conn, fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// finish says of all else what counts from now on, writes the manifest and commits.
func (t *archiveTx) finish(ctx context.Context) error {
	batch := t.putRight()
	at := len(batch)
	notify := statement{name: "epoch_notify", sql: t.store.sql("epoch_notify")}
	notify.args.text(fmt.Sprintf(`{"generation": %d, "shard": %d, "epoch": %d}`,
		t.generation, t.shard, t.e.delta.Epoch))
	batch = append(batch, t.Shard.manifest(t.e.delta, &t.e.manifest), notify,
		statement{name: "commit", sql: "commit"})
	return t.store.run(ctx, t.conn, batch, map[int]reader{at: func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			copy(t.e.digest[:], rows.Values()[0])
		}
		return nil
	}})
}

// putRight gives the statements for what a snapshot doesn't have but what depends on it, as a step
// back to a retained epoch has them.
func (t *archiveTx) putRight() []statement {
	chain := func(s *statement) {
		array(&s.args, int8Array, t.chain, func(b []byte, epoch *int64) []byte {
			return appendInt8(b, *epoch)
		})
	}
	aside, manifests := t.statement("restore_aside"), t.statement("restore_manifests")
	aside.args.int8(t.tip.epoch)
	chain(&aside)
	manifests.args.int8(t.first)
	chain(&manifests)
	batch := []statement{aside, manifests}
	if len(t.offsets) > 0 {
		batch = append(batch, t.encodeOffsets(t.e.delta))
	}
	attempts, note := t.statement("restore_attempts"), t.statement("archive_attempt")
	attempts.args.int8(t.first)
	note.args.uuid(t.attempt)
	note.args.int8(t.tip.epoch)
	note.args.jsonb(describeDamage(t.why))
	return append(batch, t.statement("restore_released"), attempts, note)
}
