package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// RestoreTo takes a shard, as a new epoch, back to what it was after an earlier one: source offsets,
// watermark, buffer and results together. The epochs since then stay on record as discarded, and the
// next Restore gives them as replays. Nothing is done when the shard stands at that epoch and all of
// it verifies. It takes the shard as worker for as long as that takes.
//
// Errors: those of Take; ErrNotRetained, with the epochs it could be, when the epoch is none that
// counts or its rows are gone or damaged.
func (s *Store) RestoreTo(
	ctx context.Context, generation, shard int32, worker string, epoch int64,
) (err error) {
	if err := s.reinstate(ctx, generation, shard); err != nil {
		return err
	}
	h, err := s.Take(ctx, generation, shard, worker)
	if err != nil {
		return err
	}
	err = h.RestoreTo(ctx, epoch)
	outcome := "restored"
	if err != nil {
		outcome = err.Error()
	}
	return errors.Join(err, h.Leave(ctx, outcome))
}

// RestoreTo is what Store.RestoreTo does for a shard that was taken, in place of Restore.
func (h *Shard) RestoreTo(ctx context.Context, epoch int64) error {
	p, err := h.plan(ctx, &findings{})
	if err == nil {
		err = h.restoreTo(ctx, p, epoch)
	}
	if err != nil {
		return fmt.Errorf("restore shard %d to epoch %d: %w", h.shard, epoch, err)
	}
	return nil
}

func (h *Shard) restoreTo(ctx context.Context, p *plan, epoch int64) error {
	if p.found.empty() && p.tip().epoch == epoch {
		return nil
	}
	for i, m := range p.base {
		if m.epoch != epoch {
			continue
		}
		if !p.allows(i) {
			break
		}
		_, err := h.goBack(ctx, p, i)
		return err
	}
	return p.refuse()
}

// refuse says to which epochs the shard can go back.
func (p *plan) refuse() error {
	newest := p.target()
	if newest < 0 {
		return fmt.Errorf("%w: none verifies: %w", ErrNotRetained, damageError(p.found.damage()))
	}
	oldest := newest
	for i := range newest {
		if p.allows(i) {
			oldest = i
			break
		}
	}
	return fmt.Errorf("%w: the oldest that can be restored is %d, the newest %d", ErrNotRetained,
		p.base[oldest].epoch, p.base[newest].epoch)
}

// reinstate puts the row of a shard back in its place when it is missing, as its newest manifest
// and attempt say.
func (s *Store) reinstate(ctx context.Context, generation, shard int32) error {
	err := s.retry(ctx, func() error {
		_, err := s.pool.Exec(ctx, s.sql("restore_shard"), generation, shard)
		return err
	})
	if err != nil {
		return fmt.Errorf("put shard %d of generation %d in its place: %w", shard, generation, err)
	}
	return nil
}

// missingTx gives the error of a shard without a row: ErrNoShard when the generation has no such
// shard.
func (h *Shard) missingTx(ctx context.Context, tx pgx.Tx) error {
	var missing bool
	var newest int64
	row := tx.QueryRow(ctx, h.store.sql("missing_shard"), h.generation, h.shard)
	err := row.Scan(&missing, &newest)
	switch {
	case err != nil:
		return fmt.Errorf("see whether there should be one: %w", err)
	case !missing:
		return ErrNoShard
	}
	return fmt.Errorf("%w; tally restore --to-epoch %d --shard %d puts it back",
		damageError([]Damage{{
			Table: "shard", Row: fmt.Sprint(h.shard), What: "it is missing",
		}}), newest, h.shard)
}
