package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// hold keeps a feed from going past the position at which a candidate catches up, until all feeds
// have got there. A feed of a partition that the serving generation did not have is there from the
// beginning.
type hold struct {
	// on is true until all feeds have arrived; to is where this one has to go.
	on, arrived bool
	to          string
	// last is true when no record but those at hand comes up to the position.
	last bool
	// records are those read past it, and identity that of the source at their end.
	records  []stream.Record
	identity string
}

// waits tells whether the feed has to wait for others.
func (h *hold) waits() bool { return h.on && h.arrived }

// holdAt begins the hold of a feed that has just been opened.
func (f *feed) holdAt(ctx context.Context, c *stream.CatchUp) error {
	if c == nil {
		return nil
	}
	f.hold.on, f.hold.arrived = true, true
	at := c.Of(f.source.Partition())
	if at == nil {
		return nil
	}
	order, err := f.compare(ctx, f.to, at.To)
	f.hold.to, f.hold.arrived = at.To, order >= 0
	return err
}

func (f *feed) compare(ctx context.Context, a, b string) (int, error) {
	if a == b {
		return 0, nil
	}
	order, err := f.source.Compare(ctx, a, b)
	if err != nil {
		return 0, fmt.Errorf("compare positions of source %s: %w", f.source.Partition(), err)
	}
	return order, nil
}

// holdBack puts what was just read past the feed's position aside.
func (f *feed) holdBack(ctx context.Context) error {
	if !f.hold.on || len(f.records) == 0 {
		return nil
	}
	n := 0
	if !f.hold.arrived {
		var failed error
		n = sort.Search(len(f.records), func(i int) bool {
			order, err := f.compare(ctx, f.records[i].Position, f.hold.to)
			if err != nil {
				failed = err
			}
			// Positions ascend, and one that is the same ends the search behind it.
			return order > 0
		})
		if failed != nil {
			return failed
		}
		f.hold.last = n < len(f.records)
		if n > 0 && n == len(f.records) {
			order, err := f.compare(ctx, f.records[n-1].Position, f.hold.to)
			if err != nil {
				return err
			}
			f.hold.last = order == 0
		}
	}
	if n < len(f.records) {
		f.hold.records, f.hold.identity = f.records[n:], f.next
		f.records, f.next = f.records[:n], f.identity
	}
	return nil
}

// fallsShort refuses a source that ends before the position that its feed has to get to.
func (f *feed) fallsShort() error {
	h := &f.hold
	if !h.on || h.arrived || len(f.records) > 0 || !f.ended && !f.caughtUp {
		return nil
	}
	return fmt.Errorf("%w: source %s ends at %q, the serving generation had read up to %q; bring "+
		"back what followed", stream.ErrPositionLost,
		f.source.Partition(), f.to, h.to)
}

// endsAt tells whether the source has been read to a fixed end that is this position, which need not
// be that of a record.
func (f *feed) endsAt(position string) bool {
	end, fixed := endOf(f.source)
	return fixed && end == position && len(f.records) == 0 && (f.ended || f.caughtUp)
}

// holds tells whether a feed has yet to arrive.
func (in *intake) holds() bool {
	return slices.ContainsFunc(in.feeds, func(f *feed) bool { return f.hold.on && !f.hold.arrived })
}

// released tells whether a candidate has caught up and its watermark stands where it was released.
func (in *intake) released(watermark stream.Micros) bool {
	in.arrive()
	return in.catchUp == nil || !in.holds() && watermark >= in.catchUp.Watermark
}

// arrive notes which feeds have got to their positions, and lets all go on when the last has.
func (in *intake) arrive() {
	for _, f := range in.feeds {
		h := &f.hold
		if h.on && !h.arrived && len(f.records) == 0 && (h.last || f.endsAt(h.to)) {
			f.to, h.arrived = h.to, true
		}
	}
	if in.holds() {
		return
	}
	for _, f := range in.feeds {
		if h := &f.hold; len(h.records) > 0 {
			f.records, f.next = h.records, h.identity
		}
		f.hold = hold{}
	}
}

// catchesUp says in an empty batch whether the watermark is held or released.
func (in *intake) catchesUp(b *stream.Batch, watermark stream.Micros) {
	if in.released(watermark) {
		return
	}
	if in.holds() {
		b.Held = in.catchUp
	} else {
		b.Release = in.catchUp
	}
}

// caughtUpAgain says so in a batch that was read before: no epoch moved the watermark but the one
// that released it.
func (in *intake) caughtUpAgain(b *stream.Batch, watermark stream.Micros) {
	switch {
	case in.catchUp == nil, watermark >= in.catchUp.Watermark:
	case b.Watermark > watermark:
		b.Release = in.catchUp
	default:
		b.Held = in.catchUp
	}
}
