package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// snapshotRounds bounds how often the results that changed meanwhile are read again before the
// last time, which has to hold the transaction open; snapshotRest is how few of them may be left.
const (
	snapshotRounds = 5
	snapshotRest   = 20_000
)

// Snapshot writes all that a shard needs to go on from its newest epoch: the retained manifests,
// the source offsets, the live rows of the buffer, and the results. Every row is checked, as is the
// whole: what is not what was written is a *DamageError, and the snapshot is not to be used.
//
// It holds no transaction open for long, however much there is. Results are read a page at a time,
// each in a statement of its own, while epochs go on; then those that changed meanwhile, until few
// are left; and these in one short transaction, with the manifests and offsets that say which epoch
// all is of now. Rows of the buffer say themselves at which epochs they are live, so they are read
// afterwards, a page at a time, as of that epoch. Nothing must be purged meanwhile.
func (s *Store) Snapshot(
	ctx context.Context, generation, shard int32, w io.Writer,
) (SnapshotEnd, error) {
	p := &snapshotter{
		Shard: &Shard{store: s, generation: generation, shard: shard}, w: w, query: s.pooled(),
	}
	if err := p.write(ctx); err != nil {
		return SnapshotEnd{}, fmt.Errorf("take a snapshot of shard %d: %w", shard, err)
	}
	return p.end, nil
}

// Stands tells at which epoch a shard stands, and what it belongs to.
func (s *Store) Stands(ctx context.Context, generation, shard int32) (SnapshotHead, int64, error) {
	head := SnapshotHead{
		Format: snapshotFormat, Version: snapshotVersion, Generation: generation, Shard: shard,
	}
	var epoch int64
	err := s.retry(ctx, func() error {
		row := s.pool.QueryRow(ctx, s.sql("archive_shard"), generation, shard)
		return row.Scan(&epoch, &head.Reconciliation, &head.RuleVersion)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoShard
	}
	if err != nil {
		return head, 0, fmt.Errorf("see where shard %d of generation %d stands: %w",
			shard, generation, err)
	}
	return head, epoch, nil
}

// snapshotter writes one snapshot.
type snapshotter struct {
	*Shard
	w     io.Writer
	query query
	end   SnapshotEnd
	// page holds rows until their statement has ended well.
	page   []byte
	rows   int
	damage []Damage
}

func (p *snapshotter) write(ctx context.Context) error {
	head, epoch, err := p.store.Stands(ctx, p.generation, p.shard)
	if err != nil || epoch == 0 {
		return err
	}
	if err := writeLine(p.w, head); err != nil {
		return err
	}
	if err := p.results(ctx); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if epoch, err = p.catchUp(ctx, epoch); err != nil {
		return fmt.Errorf("changed results: %w", err)
	}
	tip, err := p.pin(ctx, epoch)
	if err != nil {
		return err
	}
	if err := p.buffer(ctx, tip); err != nil {
		return fmt.Errorf("buffer: %w", err)
	}
	p.end.Epoch = tip.epoch
	return writeLine(p.w, snapshotLine{End: &p.end})
}

// table writes a table whose rows come a page at a time, as long as a page has any.
func (p *snapshotter) table(name string, page func() error) error {
	if err := p.open(name); err != nil {
		return err
	}
	for {
		if err := page(); err != nil {
			return err
		}
		if len(p.damage) > 0 {
			return damageError(p.damage)
		}
		if _, err := p.w.Write(p.page); err != nil {
			return err
		}
		if p.rows == 0 {
			_, err := io.WriteString(p.w, copyTrailer)
			return err
		}
	}
}

func (p *snapshotter) open(name string) error {
	if err := writeLine(p.w, snapshotLine{Table: name}); err != nil {
		return err
	}
	_, err := io.WriteString(p.w, copyHeader)
	return err
}

func (p *snapshotter) reset() { p.page, p.rows, p.damage = p.page[:0], 0, p.damage[:0] }

func (p *snapshotter) add(v [][]byte) {
	p.page = appendTuple(p.page, v)
	p.rows++
}

// results writes all results.
func (p *snapshotter) results(ctx context.Context) error {
	last := firstKey
	return p.table(partMatch, func() error {
		s := p.statement("archive_matches")
		addKey(&s.args, last)
		after := last
		err := p.query(ctx, s, p.reset, func(v [][]byte) {
			p.addResult(v)
			after = archivedKey(v)
		})
		last = after
		return err
	})
}

func (p *snapshotter) addResult(v [][]byte) {
	if said, standing := hashArchivedResult(v); !bytes.Equal(v[columnHash], append(said[:], standing[:]...)) {
		p.damage = append(p.damage, Damage{
			"match", fmt.Sprintf("%x", v[columnKey+1]), "its row_hash is not that of its columns",
		})
	}
	p.add(v)
}

// hashArchivedResult hashes the columns of archive_matches.
func hashArchivedResult(v [][]byte) (said, standing rowHash) {
	said = hashColumns(appendColumnsOf(nil, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
	return said, hashColumns(appendColumnsOf(nil, v, columnKey+1, columnTold, columnChanged))
}

// catchUp writes the results that changed after an epoch, until few are left to write, and gives
// the epoch after which those changed.
func (p *snapshotter) catchUp(ctx context.Context, epoch int64) (int64, error) {
	for range snapshotRounds {
		_, now, err := p.store.Stands(ctx, p.generation, p.shard)
		if err != nil || now == epoch {
			return epoch, err
		}
		if err := p.changed(ctx, epoch, p.query); err != nil {
			return epoch, err
		}
		epoch = now
		if p.rows < snapshotRest {
			return epoch, nil
		}
	}
	return epoch, nil
}

func (p *snapshotter) changed(ctx context.Context, epoch int64, q query) error {
	s := p.statement("archive_changed")
	s.args.int8(epoch)
	return p.part(ctx, partMatch, q, s, p.addResult)
}

// part writes the rows of one statement as a table.
func (p *snapshotter) part(
	ctx context.Context, name string, q query, s statement, add func(v [][]byte),
) error {
	if err := q(ctx, s, p.reset, add); err != nil {
		return err
	}
	if len(p.damage) > 0 {
		return damageError(p.damage)
	}
	if err := p.open(name); err != nil {
		return err
	}
	_, err := p.w.Write(append(p.page, copyTrailer...))
	return err
}

// pin writes what says of which epoch the snapshot is, and gives that epoch's manifest.
func (p *snapshotter) pin(ctx context.Context, epoch int64) (*storedManifest, error) {
	var tip *storedManifest
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, p.store.pool, options, func(tx pgx.Tx) error {
		q := func(ctx context.Context, s statement, reset func(), row func(v [][]byte)) error {
			reset()
			return readAll(ctx, tx.Conn().PgConn(), s, row)
		}
		d, err := readHead(ctx, p.Shard, q, p.store.retain)
		if err != nil {
			return err
		}
		d.checkShard()
		d.checkManifests()
		if err := d.checkOffsets(ctx); err != nil {
			return err
		}
		if !d.found.empty() {
			return damageError(d.found.damage())
		}
		tip = d.tip()
		return p.pinTx(ctx, q, epoch)
	})
	return tip, err
}

func (p *snapshotter) pinTx(ctx context.Context, q query, epoch int64) error {
	manifests := p.statement("verify_manifests")
	manifests.args.int8(p.store.retain)
	array(&manifests.args, int8Array, []int64(nil), func(b []byte, n *int64) []byte {
		return appendInt8(b, *n)
	})
	err := p.part(ctx, partManifest, q, manifests, func(v [][]byte) { p.add(v[:columnHasAttempt]) })
	if err == nil {
		err = p.part(ctx, partOffset, q, p.statement("verify_offsets"), p.add)
	}
	if err == nil {
		err = p.changed(ctx, epoch, q)
	}
	return err
}

// buffer writes the rows that are live after an epoch.
func (p *snapshotter) buffer(ctx context.Context, tip *storedManifest) error {
	var side, id string
	var added int64
	var live, whole setDigest
	err := p.table(partBuffer, func() error {
		s := p.statement("archive_rows")
		s.args.int8(tip.epoch)
		s.args.time(tip.after)
		s.args.text(side)
		s.args.text(id)
		s.args.int8(added)
		lastSide, lastID, lastAdded := side, id, added
		reset := func() {
			p.reset()
			live = whole
		}
		err := p.query(ctx, s, reset, func(v [][]byte) {
			p.addRow(v, &live)
			lastSide, lastID, lastAdded = string(v[2]), string(v[3]), readInt8(v[13])
		})
		whole = live
		side, id, added = lastSide, lastID, lastAdded
		p.end.Rows += int64(p.rows)
		return err
	})
	if err != nil {
		return err
	}
	if want := tip.counts[countBuffered]; whole != tip.live || p.end.Rows != want {
		return damageError([]Damage{{
			"buffer", fmt.Sprintf("live at epoch %d", tip.epoch),
			fmt.Sprintf("%d rows are live, %d by the manifest, and their digests differ",
				p.end.Rows, want),
		}})
	}
	return nil
}

func (p *snapshotter) addRow(v [][]byte, live *setDigest) {
	hash := hashArchivedRow(v)
	if !bytes.Equal(hash[:], v[14]) {
		p.damage = append(p.damage, Damage{
			"buffer", fmt.Sprintf("%s %s, added in epoch %d", v[2], v[3], readInt8(v[13])),
			"its row_hash is not that of its columns",
		})
	}
	live.add(hash)
	p.add(v)
}

// hashArchivedRow hashes the columns of archive_rows.
func hashArchivedRow(v [][]byte) rowHash {
	return hashColumns(appendColumnsOf(nil, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13))
}
