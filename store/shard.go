package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// State is what the store held of a shard when it was taken.
type State struct {
	// Epoch is the newest committed one, 0 before the first.
	Epoch     int64
	Watermark stream.Micros
	// Buffered is how many live rows the buffer held after that epoch.
	Buffered int64
	// Progress is how far each partition was read, in the order of partitions.
	Progress []stream.Progress
	// Replays are the discarded epochs to read again before anything new, in their order.
	Replays []Recorded
	// Damage is what Restore found that was not as it was written.
	Damage []Damage
	// RestoredFrom and RestoredTo are the epoch that was found and the one that Restore went back
	// to; 0 when it went on from what it found.
	RestoredFrom, RestoredTo int64
}

// Stats count what Commit had to do besides committing.
type Stats struct {
	// Redone counts epochs written again by upsert because a fresh identity existed.
	Redone int64
	// Reacquired counts how often the shard was taken again after a lost connection.
	Reacquired int64
	// Resolved counts commits that were found done after their connection was lost.
	Resolved int64
}

// Shard is a shard held by one attempt. Commit, Leave and Encode are for one goroutine at a time,
// each; Fetch and Extend may run beside any of them.
type Shard struct {
	// State is as it was when the shard was taken; it doesn't follow the commits.
	State

	store      *Store
	generation int32
	shard      int32
	attempt    uuid.UUID

	// epoch and token are what the next commit is fenced by; digest is that of the epoch's manifest.
	epoch, token int64
	digest       [digestSize]byte
	// live is the digest of the buffer after the newest epoch that was encoded.
	live setDigest
	// unsettled is set when a connection was lost: a transaction may be under way, and the shard
	// has to be acquired again before anything is written.
	unsettled bool

	seen seen

	redone, reacquired, resolved atomic.Int64
}

// Take takes a shard for a new attempt, if its lease is free: see Lease. From then on commits of
// whoever held it are refused. Errors: ErrHeld, with the holder in a HeldError, while another worker
// has the lease; ErrNoShard when the shard was never registered;
// ErrRetired when its generation neither serves nor is a candidate.
func (s *Store) Take(
	ctx context.Context, generation, shard int32, worker string,
) (*Shard, error) {
	h := &Shard{store: s, generation: generation, shard: shard, attempt: uuid.New()}
	err := s.retry(ctx, func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return h.takeTx(ctx, tx, worker) })
	})
	if err != nil {
		return nil, fmt.Errorf("take shard %d of generation %d: %w", shard, generation, err)
	}
	h.seen.epoch.Store(h.epoch)
	h.seen.token.Store(h.token)
	return h, nil
}

// Stats gives the counts so far.
func (h *Shard) Stats() Stats {
	return Stats{
		Redone: h.redone.Load(), Reacquired: h.reacquired.Load(), Resolved: h.resolved.Load(),
	}
}

func (h *Shard) takeTx(ctx context.Context, tx pgx.Tx, worker string) error {
	sql := h.store.sql
	row := tx.QueryRow(ctx, sql("take"), h.generation, h.shard, h.attempt.String(), worker,
		h.store.leaseFor.Microseconds())
	err := row.Scan(&h.epoch, &h.token, (*micros)(&h.Watermark))
	if errors.Is(err, pgx.ErrNoRows) {
		if err := h.retiredTx(ctx, tx); err != nil {
			return err
		}
		err := h.whoHoldsTx(ctx, tx)
		if errors.Is(err, ErrNoShard) {
			err = h.missingTx(ctx, tx)
		}
		return err
	}
	if err != nil {
		return err
	}
	h.Epoch = h.epoch
	rows, err := tx.Query(ctx, sql("take_progress"), h.generation, h.shard)
	if err != nil {
		return fmt.Errorf("read the source offsets: %w", err)
	}
	if h.Progress, err = pgx.CollectRows(rows, scanProgress); err != nil {
		return fmt.Errorf("read the source offsets: %w", err)
	}
	var live, digest []byte
	row = tx.QueryRow(ctx, sql("take_manifest"), h.generation, h.shard, h.epoch)
	err = row.Scan(&h.Buffered, &live, &digest)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read the manifest of epoch %d: %w", h.epoch, err)
	}
	h.live = readSetDigest(live)
	copy(h.digest[:], digest)
	return nil
}

// retiredTx tells whether the shard was not taken because of its generation.
func (h *Shard) retiredTx(ctx context.Context, tx pgx.Tx) error {
	var status GenerationStatus
	err := tx.QueryRow(ctx, h.store.sql("generation_status"), h.generation).Scan(&status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // which is told by what else is missing
	case err != nil:
		return fmt.Errorf("read the status of its generation: %w", err)
	case status != Candidate && status != Serving:
		return fmt.Errorf("%w: it is %s; tally generation list shows what serves", ErrRetired, status)
	}
	return nil
}

func scanProgress(row pgx.CollectableRow) (stream.Progress, error) {
	var p stream.Progress
	var side string
	err := row.Scan(&side, &p.Source, &p.Number, &p.To, (*micros)(&p.Watermark), &p.Idle,
		(*micros)(&p.LastEventAt), &p.Identity)
	if err != nil {
		return p, err
	}
	p.From = p.To
	p.Side, err = stream.ParseSide(side)
	return p, err
}
