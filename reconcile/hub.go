package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

const (
	// hubRecordsMax bounds the records that the fastest shard of a process may be ahead of the
	// slowest in one source; a read that has begun may add chunkRecords.
	hubRecordsMax = 32 * chunkRecords
	// hubPatience is how long a Read waits for other shards before it says so, hubGathering how long
	// the first one waits for shards that start together.
	hubPatience  = 50 * time.Millisecond
	hubGathering = 5 * time.Second
)

// hub reads one source for all shards of a process. Each shard has a view, which is a Source of its
// own. What was read is kept until every view has had it, up to hubRecordsMax; a view that closes is
// waited for no longer.
//
// A view that opens before what is kept makes the hub read from there again; the others skip what
// they have had. With one view the hub passes through what it reads.
type hub struct {
	source Source

	mu sync.Mutex
	// changed is closed, and made anew, whenever a view that waits should look again.
	changed chan struct{}
	// busy is true while one goroutine uses the source. Nothing else touches it, nor at, identity,
	// open and bounded.
	busy  bool
	views map[*view]struct{}
	// awaited are views that are to open before the first read.
	awaited map[*view]struct{}
	// stopReading ends the read under way. The end of the shard that began it does not, since it
	// serves the others as well.
	stopReading context.CancelFunc

	// kept are the chunks that a view may still need, the first with the number first.
	kept  []chunk
	first int
	held  int // records in kept
	// base is the position just before kept, at the one just after it, as is identity.
	base, at, identity string
	// open is true while the source stands at that position.
	open, bounded bool
	// ended is true when a bounded source has been read to its end; quietSince is when one that
	// goes on was last found to have no more, zero when it had.
	ended      bool
	quietSince time.Time
}

func newHub(source Source) *hub {
	return &hub{
		source: source, changed: make(chan struct{}), views: map[*view]struct{}{},
		awaited: map[*view]struct{}{}, stopReading: func() {},
	}
}

// view gives the source of one shard.
func (h *hub) view() *view { return &view{hub: h} }

// await makes the first read wait until the view has opened, so that shards that start together
// read the source once; or until it says that it will not, or for hubGathering.
func (h *hub) await(v *view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited[v] = struct{}{}
	time.AfterFunc(hubGathering, func() { h.arrive(v) })
}

// arrive says that a view is awaited no longer.
func (h *hub) arrive(v *view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, awaited := h.awaited[v]; awaited {
		delete(h.awaited, v)
		h.change()
	}
}

// close ends a read under way, waits for it, also after the context has ended, and closes the
// source.
func (h *hub) close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopReading()
	for h.busy {
		h.wait(context.WithoutCancel(ctx), nil)
	}
	return h.source.Close()
}

// change wakes whoever waits.
func (h *hub) change() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait lets go of the lock until something changes; false when the time or context is over.
func (h *hub) wait(ctx context.Context, timeout <-chan time.Time) bool {
	changed := h.changed
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-changed:
		return true
	case <-timeout:
	case <-ctx.Done():
	}
	return false
}

// use runs do with the source to itself and without the lock.
func (h *hub) use(ctx context.Context, do func() error) error {
	for h.busy {
		if !h.wait(ctx, nil) && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	h.busy = true
	h.mu.Unlock()
	err := do()
	h.mu.Lock()
	h.busy = false
	h.change()
	return err
}

// attach opens the source at the position of a view, which says whether it can give what follows,
// and finds the view's place in what is kept.
func (h *hub) attach(ctx context.Context, v *view, position, identity string) (string, error) {
	defer h.arrive(v)
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.use(ctx, func() (err error) {
		h.open = false
		if identity, err = h.source.Open(ctx, position, identity); err != nil {
			return err
		}
		v.position, v.identity, v.err = position, identity, nil
		return h.place(ctx, v)
	})
	return identity, err
}

// place puts a view where the source has just been opened for it.
func (h *hub) place(ctx context.Context, v *view) error {
	h.mu.Lock()
	delete(h.views, v) // it may open again after an error
	alone, kept, base := len(h.views) == 0, slices.Clone(h.kept), h.base
	v.next, v.offset, v.skipping = h.first, 0, false
	h.views[v] = struct{}{} // what is kept stays from here on
	h.mu.Unlock()
	if alone {
		h.rewind(v)
		return nil
	}
	passed, offset, err := h.find(ctx, kept, base, v.position)
	switch {
	case err != nil:
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.views, v)
		h.trim()
		return err
	case passed < 0:
		h.rewind(v)
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = v.position == h.at // else it is opened again there before the next read
	v.next, v.offset = v.next+passed, offset
	v.skipping = passed == len(kept) && !h.open
	h.trim()
	return nil
}

// find gives how many of the chunks after base a position has passed, and how many records of the
// one after them; -1 where it lies before base.
func (h *hub) find(
	ctx context.Context, kept []chunk, base, position string,
) (passed, offset int, err error) {
	order, err := h.source.Compare(ctx, position, base)
	if err != nil || order < 0 {
		return -1, 0, err
	}
	for i := range kept {
		offset, err = h.skip(ctx, kept[i].records, position)
		if err != nil || offset < len(kept[i].records) {
			return i, offset, err
		}
	}
	return len(kept), 0, nil
}

// rewind begins again where the source has been opened for a view: all others skip.
func (h *hub) rewind(v *view) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first += len(h.kept)
	h.kept, h.held = nil, 0
	h.base, h.at, h.identity, h.open = v.position, v.position, v.identity, true
	h.ended, h.quietSince = false, time.Time{}
	for other := range h.views {
		other.next, other.offset, other.skipping = h.first, 0, other != v
	}
}

// skip counts the records up to a position, which are the first ones.
func (h *hub) skip(ctx context.Context, records []stream.Record, position string) (int, error) {
	low, high := 0, len(records)
	for probe := high - 1; low < high; probe = (low + high) / 2 {
		order, err := h.source.Compare(ctx, records[probe].Position, position)
		if err != nil {
			return 0, err
		}
		if order <= 0 {
			low = probe + 1
		} else {
			high = probe
		}
	}
	return low, nil
}

// detach lets a view go; the last one closes the source.
func (h *hub) detach(v *view) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, attached := h.views[v]; !attached {
		return nil
	}
	delete(h.views, v)
	h.trim()
	h.change()
	if len(h.views) > 0 {
		return nil
	}
	h.stopReading()
	return h.use(context.Background(), func() error {
		h.mu.Lock()
		alone := len(h.views) == 0
		h.mu.Unlock()
		if !alone {
			return nil // one has opened meanwhile
		}
		h.open = false
		return h.source.Close()
	})
}

// trim drops what every view has had.
func (h *hub) trim() {
	last := h.first + len(h.kept)
	for v := range h.views {
		last = min(last, v.next)
	}
	for h.first < last {
		c := &h.kept[0]
		h.base = c.records[len(c.records)-1].Position
		h.held -= len(c.records)
		h.kept[0] = chunk{} // let go of the records
		h.kept = h.kept[1:]
		h.first++
	}
}
