package reconcile

import (
	"context"
	"fmt"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// replay reads the ranges of discarded epochs again, each as one epoch with the clock, the silences
// and the ends that were recorded, so that it must give the outputs that were recorded.
func (w *worker) replay(ctx context.Context, discarded []store.Recorded) error {
	for i := range discarded {
		recorded := &discarded[i]
		batch, err := w.intake.again(ctx, recorded, w.state.Watermark())
		if err != nil {
			return fmt.Errorf("replay epoch %d: %w", recorded.Epoch, err)
		}
		if err := w.epoch(ctx, batch, recorded); err != nil {
			return fmt.Errorf("replay epoch %d: %w", recorded.Epoch, err)
		}
		w.Logger.Info("replayed a discarded epoch", "epoch", recorded.Epoch,
			"records", batch.Records())
	}
	return nil
}

// again cuts the batch that a discarded epoch read. Records that have come up in the range since
// then are part of it; the outputs tell. watermark says where the loop stands.
func (in *intake) again(
	ctx context.Context, recorded *store.Recorded, watermark stream.Micros,
) (*stream.Batch, error) {
	b := in.emptyBatch()
	b.Clock, b.Replays, b.Watermark = recorded.Clock, true, recorded.Watermark
	in.caughtUpAgain(b, watermark)
	live := b.Held == nil && b.Release == nil
	for i, f := range in.feeds {
		part := &b.Parts[i]
		part.To, part.Identity = f.to, f.identity
		for j := range recorded.Progress {
			p := &recorded.Progress[j]
			if p.Partition != part.Partition {
				continue
			}
			if err := in.readTo(ctx, f, part, p.To); err != nil {
				return nil, err
			}
			if p.From != p.To { // else nothing is known of it that its opening has not told
				f.to, f.identity = p.To, p.Identity
			}
			part.To, part.Identity = p.To, p.Identity
			// What the join makes of a silence or an end is what it made of it then.
			part.CaughtUp = live && p.Idle
			part.Sealed = live && p.Watermark == stream.Infinity &&
				p.Source != join.QuarantineSource
		}
	}
	in.arrive()
	return b, nil
}

// readTo takes the records of a feed up to a position.
func (in *intake) readTo(ctx context.Context, f *feed, part *stream.Part, to string) error {
	at := f.to
	for at != to {
		if err := f.fill(ctx); err != nil {
			return fmt.Errorf("read source %s: %w", f.source.Partition(), err)
		}
		n, err := f.upTo(ctx, to)
		if err != nil {
			return err
		}
		if n > 0 {
			at, f.time = f.records[n-1].Position, f.at(n-1)
		}
		part.Records = append(part.Records, f.records[:n]...)
		passed := n < len(f.records) || len(f.hold.records) > 0
		f.records = f.records[n:]
		switch {
		case at == to, passed, f.endsAt(to):
			return nil
		case f.ended, f.caughtUp && len(f.ahead) == 0:
			return fmt.Errorf("%w: source %s ends at %q, the epoch had read up to %q",
				stream.ErrPositionLost, f.source.Partition(), at, to)
		case n > 0:
			continue // more may be at hand: several chunks can come with one token
		}
		select {
		case <-in.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// upTo counts the records at hand up to a position.
func (f *feed) upTo(ctx context.Context, to string) (n int, err error) {
	for n < len(f.records) {
		order, err := f.source.Compare(ctx, f.records[n].Position, to)
		if err != nil {
			return 0, fmt.Errorf("compare positions of source %s: %w", f.source.Partition(), err)
		}
		if order > 0 {
			break
		}
		n++
	}
	return n, nil
}
