package store

import (
	"context"
	"errors"
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
	// Progress holds the ranges that it read, and where it left each partition.
	Progress []stream.Progress
	// Output is the digest of what it changed, which the replay must give again.
	Output [digestSize]byte
}

// restoresMax bounds how often a start goes back: what an epoch that was verified leads to verifies.
const restoresMax = 3

// Restore verifies what is stored of the shard, and reads it. It is called once, after Take and
// before anything else.
//
// Where the newest epoch does not verify, the shard first goes back, in one transaction, to the
// newest earlier one that does; State.Damage then says why, and State.Replays which discarded epochs
// must be read again, in their order, before anything new. Where none verifies the error is a
// *DamageError and nothing is changed.
//
// What is read is nil when the state has more than cacheRows rows: it was verified all the same.
func (h *Shard) Restore(ctx context.Context, cacheRows int) (State, *stream.Found, error) {
	state, found, err := h.restore(ctx, cacheRows)
	if err != nil {
		return state, nil, fmt.Errorf("verify shard %d: %w", h.shard, err)
	}
	h.State = state
	return state, found, nil
}

func (h *Shard) restore(ctx context.Context, cacheRows int) (state State, _ *stream.Found, _ error) {
	for range restoresMax {
		d, found, err := h.inspect(ctx, cacheRows)
		if err != nil {
			return state, nil, err
		}
		if d.found.empty() {
			h.adopt(d, &state)
			return state, found, nil
		}
		if err := h.stillHeld(ctx); err != nil {
			return state, nil, err
		}
		state.Damage = append(state.Damage, d.found.damage()...)
		to, err := h.fallBack(ctx)
		if err != nil {
			return state, nil, err
		}
		if state.RestoredFrom == 0 {
			state.RestoredFrom = d.tip().epoch
		}
		state.RestoredTo = to
	}
	return state, nil, damageError(state.Damage)
}

// inspect verifies the shard and reads its live rows and their results, in one pass.
func (h *Shard) inspect(
	ctx context.Context, cacheRows int,
) (*head, *stream.Found, error) {
	d, err := readHead(ctx, h, h.store.pooled(), h.store.retain)
	if err != nil {
		return nil, nil, err
	}
	d.checkShard()
	d.checkManifests()
	if err := d.checkOffsets(ctx); err != nil {
		return nil, nil, err
	}
	var found *stream.Found
	var keepRows *[]stream.BufferRow
	var keepResults *[]stream.Result
	if d.tip().counts[countBuffered] <= int64(cacheRows) {
		found = &stream.Found{}
		keepRows, keepResults = &found.Rows, &found.Results
	}
	var rows, results findings
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := d.liveRows(both, &rows, keepRows)
		return err
	})
	group.Go(func() error {
		window := d.window()
		_, _, err := d.results(both, window, &results, keepResults)
		if err == nil {
			_, err = d.aside(both, window, &results)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	d.found.merge(&rows)
	d.found.merge(&results)
	if found != nil && d.found.empty() {
		var damaged *DamageError
		err := h.loadGone(ctx, d.tip().after, found)
		if errors.As(err, &damaged) {
			for _, row := range damaged.Found {
				d.found.note(saidDamaged, row.Table, row.Row, "%s", row.What)
			}
			err = nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return d, found, nil
}

// adopt takes over what was verified.
func (h *Shard) adopt(d *head, state *State) {
	newest := d.tip()
	state.Epoch, state.Watermark = newest.epoch, newest.after
	state.Buffered = newest.counts[countBuffered]
	for _, o := range d.offsets {
		state.Progress = append(state.Progress, o.Progress)
	}
	state.Replays = d.replays()
	h.epoch, h.live = newest.epoch, newest.live
	h.digest = [digestSize]byte{}
	copy(h.digest[:], newest.digest)
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
		list = append(list, Recorded{m.epoch, m.clock, m.sources, m.output})
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
