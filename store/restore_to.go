package store

import (
	"context"
	"fmt"
)

// RestoreTo takes the shard, as a new epoch, back to what it was after an earlier one: source
// offsets, watermark, buffer and results together. The epochs since then stay on record as
// discarded; the next Restore gives them as replays. It is called in place of Restore. Nothing is
// done when the shard stands at that epoch and all of it verifies.
//
// Errors: ErrNotRetained, with the epochs it could be, when the epoch is none that counts or its
// rows are gone; a *DamageError when what the epoch needs is itself damaged.
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
		if epoch >= p.found.before() || !p.past.verifies(i) {
			break
		}
		_, err := h.goBack(ctx, p, i)
		return err
	}
	return p.refuse()
}
