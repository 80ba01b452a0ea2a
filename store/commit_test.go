package store_test

import (
	"errors"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

func TestCommitKeepsEveryColumn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	left := row(stream.Left, event("l1", "k1", 5), 100*tick, 1)
	right := row(stream.Right, event("r1", "k1", 6), 90*tick, 1)
	lone := row(stream.Left, event("l2", "k2", -7), stream.Infinity, 1)
	grave := row(stream.Right, stream.Event{ID: "r9", Revision: -4, Deleted: true}, 50*tick, 1)
	d := delta(1)
	d.WatermarkBefore = stream.NegInfinity
	d.Added = []stream.BufferRow{lone, left, right, grave}
	d.Changes = []stream.Change{
		fresh(pair(left, right), stream.CauseJoined),
		{Result: only(lone, stream.Provisional), Cause: stream.CauseUnmatched},
	}
	commit(t, b.shard, d)

	found, err := b.shard.Load(t.Context(), d.WatermarkAfter)
	if err != nil {
		t.Fatal(err)
	}
	grave.Attributes = "{}"
	wantRows(t, found.Rows, left, lone, right, grave)
	wantResults(t, found.Results, pair(left, right), only(lone, stream.Provisional))
}

func TestCommitIsFenced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.take(t, b.Store)
	before := b.dump(t)
	err := b.shard.Commit(t.Context(), b.shard.Encode(busyDelta(1)))
	if !errors.Is(err, store.ErrFenced) {
		t.Fatalf("commit under the old token: %v, want ErrFenced", err)
	}
	wantSame(t, b.dump(t), before)
	commit(t, other, busyDelta(1))
	err = other.Commit(t.Context(), other.Encode(busyDelta(1)))
	if err == nil {
		t.Fatal("epoch 1 was committed twice")
	}
}
