package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// view is a source as one shard sees it; a hub reads it for all of them.
type view struct {
	hub *hub

	// The rest is guarded by the hub's lock.

	// position and identity are those of the last record given.
	position, identity string
	// next is the number of the chunk to give from, offset how many of its records were had.
	next, offset int
	// skipping is true while what is read may lie before position.
	skipping bool
	// err is what the read found that this view began.
	err error
}

// Partition gives the source's partition.
func (v *view) Partition() stream.Partition { return v.hub.source.Partition() }

// PollInterval is the source's.
func (v *view) PollInterval() time.Duration { return v.hub.source.PollInterval() }

// Compare is the source's.
func (v *view) Compare(ctx context.Context, a, b string) (int, error) {
	v.hub.mu.Lock()
	defer v.hub.mu.Unlock()
	var order int
	err := v.hub.use(ctx, func() (err error) {
		order, err = v.hub.source.Compare(ctx, a, b)
		return err
	})
	return order, err
}

// Open joins the shards that read the source.
func (v *view) Open(ctx context.Context, position, identity string) (string, error) {
	return v.hub.attach(ctx, v, position, identity)
}

// Bound fixes the end of the source for all shards, once.
func (v *view) Bound(ctx context.Context) error {
	h := v.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.use(ctx, func() error {
		if h.bounded {
			return nil
		}
		if err := h.reopen(ctx); err != nil {
			return err
		}
		if err := h.source.Bound(ctx); err != nil {
			return err
		}
		h.bounded = true
		return nil
	})
}

// Seal says for all shards that nothing will follow.
func (v *view) Seal() {
	v.hub.mu.Lock()
	defer v.hub.mu.Unlock()
	_ = v.hub.use(context.Background(), func() error {
		v.hub.source.Seal()
		return nil
	})
}

// Identity is what the source said it was at the last record given.
func (v *view) Identity() string {
	v.hub.mu.Lock()
	defer v.hub.mu.Unlock()
	return v.identity
}

// Close leaves the others.
func (v *view) Close() error { return v.hub.detach(v) }

// Read gives what the hub has kept for this view, or lets it read.
func (v *view) Read(
	ctx context.Context, limit int,
) (records []stream.Record, atEnd bool, err error) {
	h := v.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	var patience <-chan time.Time
	for {
		if err := v.err; err != nil {
			v.err = nil
			return nil, false, err
		}
		if records, atEnd = v.give(limit); records != nil {
			return records, atEnd, nil
		}
		switch {
		case h.ended, h.quiet():
			return nil, true, nil
		case h.busy: // a read goes on, or a view opens
		case len(h.awaited) > 0 || h.held >= hubRecordsMax:
			if patience == nil {
				patience = time.After(hubPatience)
			}
		case len(h.views) == 1: // nobody to read for but itself
			c, skips, err := h.readHere(ctx, limit)
			h.finish(v, c, skips, err)
			continue
		default:
			h.begin(ctx, v, limit)
		}
		if !h.wait(ctx, patience) {
			return nil, false, ctx.Err()
		}
	}
}

// give takes up to limit records from what is kept, nil for none; atEnd when the source had no more
// after them.
func (v *view) give(limit int) (records []stream.Record, atEnd bool) {
	h := v.hub
	if v.atHead() {
		return nil, false
	}
	c := &h.kept[v.next-h.first]
	records = c.records[v.offset:min(v.offset+limit, len(c.records))]
	v.offset += len(records)
	v.position = records[len(records)-1].Position
	if v.offset < len(c.records) {
		return slices.Clip(records), false
	}
	v.identity = c.identity
	v.next, v.offset = v.next+1, 0
	atEnd = c.caughtUp && v.atHead()
	if before := h.held; before >= hubRecordsMax {
		if h.trim(); h.held < before {
			h.change()
		}
	} else {
		h.trim()
	}
	return slices.Clip(records), atEnd
}

func (v *view) atHead() bool { return v.next == v.hub.first+len(v.hub.kept) }

// quiet tells whether the source was found to have no more just now, so that many shards ask it no
// more often than one.
func (h *hub) quiet() bool {
	return !h.quietSince.IsZero() && time.Since(h.quietSince) < h.source.PollInterval()
}

// readHere reads on in the goroutine of the only view, whose end ends the read as well.
func (h *hub) readHere(ctx context.Context, limit int) (chunk, map[*view]int, error) {
	h.busy = true
	h.mu.Unlock()
	defer h.mu.Lock()
	return h.read(ctx, limit)
}

// begin reads on in a goroutine of its own, so that the view that wants it can go meanwhile.
func (h *hub) begin(ctx context.Context, v *view, limit int) {
	h.busy = true
	ctx, h.stopReading = context.WithCancel(context.WithoutCancel(ctx))
	stop := h.stopReading
	go func() {
		defer stop()
		c, skips, err := h.read(ctx, limit)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.finish(v, c, skips, err)
	}()
}

// finish ends a read.
func (h *hub) finish(v *view, c chunk, skips map[*view]int, err error) {
	if err == nil {
		h.keep(c, skips)
	} else {
		v.err = err
	}
	h.busy = false
	h.change()
}

// read reads a chunk, and says how many of its records each view has had before.
func (h *hub) read(
	ctx context.Context, limit int,
) (c chunk, skips map[*view]int, err error) {
	if err := h.reopen(ctx); err != nil {
		return c, nil, err
	}
	h.open = false // until the read has succeeded
	records, atEnd, err := h.source.Read(ctx, limit)
	if err != nil {
		return c, nil, err
	}
	c = chunk{records: records, identity: h.source.Identity(), caughtUp: atEnd}
	for v, position := range h.skippers() {
		if skips == nil {
			skips = map[*view]int{}
		}
		if skips[v], err = h.skip(ctx, records, position); err != nil {
			return c, nil, err
		}
	}
	h.open = true
	return c, skips, nil
}

// reopen opens the source where it stood, if it is not open there.
func (h *hub) reopen(ctx context.Context) error {
	if h.open {
		return nil
	}
	if _, err := h.source.Open(ctx, h.at, h.identity); err != nil {
		return fmt.Errorf("open it again: %w", err)
	}
	h.open = true
	return nil
}

// skippers gives the views that may have had what is read next, with their positions, which do not
// change until then.
func (h *hub) skippers() map[*view]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list map[*view]string
	for v := range h.views {
		if v.skipping {
			if list == nil {
				list = map[*view]string{}
			}
			list[v] = v.position
		}
	}
	return list
}

// keep adds a chunk for all views.
func (h *hub) keep(c chunk, skips map[*view]int) {
	h.ended = c.caughtUp && h.bounded
	h.quietSince = time.Time{}
	if len(c.records) == 0 {
		if c.caughtUp {
			h.quietSince = time.Now()
		}
		return
	}
	h.at, h.identity = c.records[len(c.records)-1].Position, c.identity
	h.kept = append(h.kept, c)
	h.held += len(c.records)
	for v, n := range skips {
		if n == len(c.records) {
			v.next++
		} else {
			v.offset, v.skipping = n, false
		}
	}
	h.trim()
}
