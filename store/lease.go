package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lease is who a shard belongs to. A lease is a promise to the other workers, and only that: until
// it runs out by the clock of the database, they leave the shard alone. What keeps a worker from
// writing that has lost its shard is the fencing token, which every commit checks. So a worker needs
// no clock, and one that sleeps past its lease does no harm, however late it wakes.
type Lease struct {
	Shard int32
	// Worker has the lease; empty when it was released or has run out.
	Worker string
	// Running is false while the shard, handed over to Worker, waits to be taken.
	Running bool
	// For is how much longer the lease lasts by the database clock, as of the query.
	For time.Duration
	// RequestedBy is the worker that asks for the shard, empty for none.
	RequestedBy string
}

// Free tells whether any worker may take the shard.
func (l *Lease) Free() bool { return l.Worker == "" }

// HeldError says who holds a shard; it is ErrHeld.
type HeldError struct{ Lease }

func (e *HeldError) Error() string {
	if e.Free() {
		return fmt.Sprintf("%s: shard %d was free a moment later", ErrHeld, e.Shard)
	}
	return fmt.Sprintf("%s: shard %d belongs to %s, for %s if it gives no sign of life", ErrHeld,
		e.Shard, e.Worker, e.For.Round(time.Millisecond))
}

// Is makes every HeldError an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// LeaseFor is how long a lease lasts from the last commit or Extend.
func (s *Store) LeaseFor() time.Duration { return s.leaseFor }

// Leases gives the lease of every shard of a generation, in the order of shards.
func (s *Store) Leases(ctx context.Context, generation int32) ([]Lease, error) {
	var list []Lease
	err := s.retry(ctx, func() error {
		rows, err := s.pool.Query(ctx, s.sql("lease_list"), generation)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scanLease)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the leases of generation %d: %w", generation, err)
	}
	return list, nil
}

// Request asks holder to hand a shard over to worker. It changes nothing when the shard has
// another holder by now or somebody asks for it already.
func (s *Store) Request(
	ctx context.Context, generation, shard int32, worker, holder string,
) error {
	err := s.retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, s.sql("lease_request"), generation, shard, worker, holder)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask %s for shard %d of generation %d: %w", holder, shard, generation, err)
	}
	return nil
}

// Extend is the sign of life of a worker that has nothing to commit. It gives the worker that asks
// for the shard, empty for none. It returns ErrFenced when the attempt no longer holds the shard, or
// ErrWentBack, and does not try again after another error: the next one is as good.
func (h *Shard) Extend(ctx context.Context) (requestedBy string, err error) {
	var by *string
	row := h.store.pool.QueryRow(ctx, h.store.sql("lease_extend"),
		h.generation, h.shard, h.attempt.String(), h.store.leaseFor.Microseconds())
	err = row.Scan(&by)
	if errors.Is(err, pgx.ErrNoRows) {
		err = h.whyFenced(ctx, ErrFenced)
	}
	if err != nil {
		return "", fmt.Errorf("extend the lease of shard %d: %w", h.shard, err)
	}
	if by != nil {
		requestedBy = *by
	}
	return requestedBy, nil
}

// HandedOver is the outcome of an attempt that ends because another worker asked for the shard.
const HandedOver = "handed over"

// Leave ends the attempt and releases the lease; outcome says how: done, stopped, fenced, HandedOver
// or the error. HandedOver gives the lease to the worker that asked for it. Leave changes nothing
// for another worker that has taken the shard meanwhile.
func (h *Shard) Leave(ctx context.Context, outcome string) error {
	_, err := h.store.pool.Exec(ctx, h.store.sql("leave"), h.generation, h.shard,
		h.attempt.String(), outcome, outcome == HandedOver, h.store.leaseFor.Microseconds())
	if err != nil {
		return fmt.Errorf("end the attempt on shard %d: %w", h.shard, err)
	}
	return nil
}

// whoHoldsTx gives the error of a shard that could not be taken.
func (h *Shard) whoHoldsTx(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, h.store.sql("lease_list"), h.generation)
	if err != nil {
		return fmt.Errorf("see who holds it: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanLease)
	if err != nil {
		return fmt.Errorf("see who holds it: %w", err)
	}
	for _, lease := range list {
		if lease.Shard == h.shard {
			return &HeldError{lease}
		}
	}
	return ErrNoShard
}

func scanLease(row pgx.CollectableRow) (Lease, error) {
	var l Lease
	var worker, by *string
	var micros int64
	if err := row.Scan(&l.Shard, &worker, &l.Running, &micros, &by); err != nil {
		return l, err
	}
	if worker != nil {
		l.Worker = *worker
	}
	if by != nil {
		l.RequestedBy = *by
	}
	l.For = time.Duration(micros) * time.Microsecond
	return l, nil
}
