package store

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Recorded is a discarded epoch that is to be read again just as it was.
type Recorded struct {
	Epoch int64
	// Clock is the database clock that it was judged by.
	Clock stream.Micros
	// Watermark is where it left the low watermark.
	Watermark stream.Micros
	// Progress holds the ranges that it read, and where it left each partition.
	Progress []stream.Progress
	// Output is the digest of what it changed, which the replay must give again.
	Output [digestSize]byte
}

// restoresMax bounds how often a start goes back: what an epoch that was verified leads to verifies.
const restoresMax = 3

// Depth says how much a start reads again beside the rows of the buffer.
type Depth uint8

const (
	// Quick reads what the newest epochs changed: CheckRest reads the rest, beside the work.
	Quick Depth = iota
	// Thorough reads all that CheckRest does.
	Thorough
)

// Loader takes live rows, in parts. It may keep the values that it is given, but not the slice.
type Loader func(rows []stream.BufferRow)

// Restore verifies what is stored of the shard, and reads its live rows. It is called once, after
// Take and before anything else.
//
// Where the newest epoch does not verify, the shard first goes back, in one transaction, to the
// newest earlier one that does; State.Damage then says why, and State.Replays which discarded epochs
// must be read again, in their order, before anything new. Where none verifies the error is a
// *DamageError and nothing is changed.
//
// What is read goes to the loader that begin gives for the state, nil for a state that is not to be
// loaded: it is verified all the same. While that goes on, something may turn out to be damaged, or
// the connection be lost; then begin is called again, and what the loader before it got is void.
func (h *Shard) Restore(
	ctx context.Context, depth Depth, begin func(State) Loader,
) (State, error) {
	state, err := h.restore(ctx, depth, begin)
	if err != nil {
		return state, fmt.Errorf("verify shard %d: %w", h.shard, err)
	}
	h.State = state
	return state, nil
}

func (h *Shard) restore(
	ctx context.Context, depth Depth, begin func(State) Loader,
) (state State, _ error) {
	for range restoresMax {
		var d *head
		err := h.store.retry(ctx, func() (err error) {
			d, err = h.inspect(ctx, depth, &state, begin)
			return err
		})
		if err != nil {
			return state, err
		}
		if d.found.empty() {
			h.adopt(d)
			return state, nil
		}
		if err := h.stillHeld(ctx); err != nil {
			return state, err
		}
		damage, to, err := h.fallBack(ctx, &d.found)
		if err != nil {
			return state, err
		}
		state.Damage = append(state.Damage, damage...)
		if state.RestoredFrom == 0 {
			state.RestoredFrom = d.tip().epoch
		}
		state.RestoredTo = to
	}
	return state, damageError(state.Damage)
}

// inspect verifies the shard and loads its live rows, in one pass.
func (h *Shard) inspect(
	ctx context.Context, depth Depth, state *State, begin func(State) Loader,
) (*head, error) {
	d, err := readHead(ctx, h, h.store.once(), h.store.retain)
	if err != nil {
		return nil, err
	}
	d.checkShard()
	d.checkManifests()
	if err := d.checkOffsets(ctx); err != nil {
		return nil, err
	}
	d.describe(state)
	var loader Loader
	if d.found.empty() {
		loader = begin(*state)
	}
	return d, d.load(ctx, depth, loader)
}

// load checks rows and results, each on a connection of its own, and hands the rows to the loader
// while it goes on.
func (d *head) load(ctx context.Context, depth Depth, loader Loader) error {
	var damagedRows, damagedResults findings
	rows := newParts(loader)
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer rows.close()
		_, err := d.liveRows(both, &damagedRows, rows)
		return err
	})
	group.Go(func() error {
		window := d.window()
		_, _, err := d.results(both, depth, window, &damagedResults)
		if err == nil {
			_, err = d.aside(both, window, &damagedResults)
		}
		return err
	})
	if loader != nil {
		for part := range rows.list {
			loader(part)
			rows.recycle(part)
		}
	}
	err := group.Wait()
	d.found.merge(&damagedRows)
	d.found.merge(&damagedResults)
	return err
}

// parts hands rows on in parts, to whoever reads list; to nobody where there is no loader.
type parts struct {
	list chan []stream.BufferRow
	// free are parts that were taken in and may be filled again.
	free chan []stream.BufferRow
	next []stream.BufferRow
}

const partSize, partsAhead = 1024, 16

func newParts(loader Loader) *parts {
	if loader == nil {
		return nil
	}
	return &parts{
		list: make(chan []stream.BufferRow, partsAhead), free: make(chan []stream.BufferRow, partsAhead),
	}
}

func (p *parts) add(ctx context.Context, row stream.BufferRow) {
	if p == nil {
		return
	}
	if p.next == nil {
		select {
		case p.next = <-p.free:
		default:
			p.next = make([]stream.BufferRow, 0, partSize)
		}
	}
	if p.next = append(p.next, row); len(p.next) == partSize {
		p.flush(ctx)
	}
}

func (p *parts) flush(ctx context.Context) {
	if p == nil || len(p.next) == 0 {
		return
	}
	select {
	case p.list <- p.next:
	case <-ctx.Done():
	}
	p.next = nil
}

// recycle gives a part back whose rows have been taken in.
func (p *parts) recycle(part []stream.BufferRow) {
	select {
	case p.free <- part[:0]:
	default:
	}
}

func (p *parts) close() {
	if p != nil {
		close(p.list)
	}
}

// adopt takes over what was verified.
func (h *Shard) adopt(d *head) {
	newest := d.tip()
	h.epoch, h.live = newest.epoch, newest.live
	h.digest = [digestSize]byte{}
	copy(h.digest[:], newest.digest)
	h.seen.epoch.Store(h.epoch)
}

// describe says in the state where the newest epoch left the shard.
func (d *head) describe(state *State) {
	newest := d.tip()
	state.Epoch, state.Watermark = newest.epoch, newest.after
	state.Buffered = newest.counts[countBuffered]
	state.Progress = nil
	for _, o := range d.offsets {
		state.Progress = append(state.Progress, o.Progress)
	}
	state.Replays = d.replays()
}

// replays gives the discarded epochs that go on from where the sources stand, each from where the
// one before it ended. They are those that no epoch since has read again.
func (d *head) replays() []Recorded {
	at := map[stream.Partition]string{}
	for _, o := range d.offsets {
		at[o.Partition] = o.To
	}
	watermark := d.tip().after
	left := d.unreplayed()
	var list []Recorded
	for {
		next := slices.IndexFunc(left, func(m *storedManifest) bool {
			return m.before == watermark && continues(m, at)
		})
		if next < 0 {
			return list
		}
		m := left[next]
		left = slices.Delete(left, next, next+1)
		list = append(list, Recorded{m.epoch, m.clock, m.after, m.sources, m.output})
		watermark = m.after
		for _, p := range m.sources {
			at[p.Partition] = p.To
		}
	}
}

// unreplayed gives the discarded epochs that were not read again, in their order.
func (d *head) unreplayed() []*storedManifest {
	replayed := map[int64]bool{}
	for _, m := range d.chain {
		replayed[m.replays] = true
	}
	var list []*storedManifest
	for _, m := range d.all {
		if m.kind == kindEpoch && !m.committed && m.intact() && !replayed[m.epoch] {
			list = append(list, m)
		}
	}
	return list
}

func continues(m *storedManifest, at map[stream.Partition]string) bool {
	return !slices.ContainsFunc(m.sources, func(p stream.Progress) bool {
		return at[p.Partition] != p.From
	})
}
