package join_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestCatchUpEqualsTheModel holds the watermark through a random part of each history, releases it
// at a random one and goes on, with small caches, epochs in flight and restarts: every epoch must
// change what the naive model says, and none may be due while nothing is read.
func TestCatchUpEqualsTheModel(t *testing.T) {
	t.Parallel()
	for seed := range oracle.Seeds(t, 200, 1) {
		for _, flavour := range []oracle.Flavour{oracle.Confluent, oracle.Adversarial} {
			history := oracle.Generate(seed, flavour)
			epochs, err := caughtUp(history, seed)
			if err != nil {
				t.Fatalf("seed %d (replay with TALLY_SEED=%d), %s: %v\n%s", seed, seed, flavour, err,
					history.Describe(epochs))
			}
		}
	}
}

func caughtUp(history *oracle.History, seed uint64) ([]oracle.Epoch, error) {
	rng := rand.New(rand.NewPCG(seed, 11))
	r := newRun(history, rng)
	r.cfg.ClosingsMax, r.wide = 1<<20, true
	r.state = join.New(r.cfg, r.store.start)
	model := oracle.NewModel(history.Rule, history.Partitions())
	epochs := history.Split(seed)
	held := rng.IntN(len(epochs))
	catchUp := randomCatchUp(history, rng)
	for i := range epochs[:held] {
		epochs[i].Held, epochs[i].Sealed = catchUp, nil
	}
	release := oracle.Epoch{Clock: epochs[held].Clock, Release: catchUp}
	epochs = slices.Insert(epochs, held, release)
	for i, epoch := range epochs {
		batch := batchOf(epoch, r.ends)
		if batch.Held, batch.Release = epoch.Held, epoch.Release; epoch.Release != nil {
			batch.Parts = unread(history, r.ends)
		}
		r.check = func(d *stream.Delta) error { return sameReport(d, model.Step(epoch)) }
		if err := r.step(batch); err != nil {
			return epochs, fmt.Errorf("epoch %d, held before %d, released at %s: %w", i+1, held+1,
				catchUp.Watermark, err)
		}
		again := &stream.Batch{Clock: epoch.Clock, Held: epoch.Held, Parts: unread(history, r.ends)}
		if epoch.Held != nil && r.state.Moves(again) {
			return epochs, fmt.Errorf("another epoch is due after epoch %d, which was held", i+1)
		}
	}
	if err := r.commit(); err != nil {
		return epochs, err
	}
	if got, want := r.store.active(), model.Active(); !slices.Equal(got, want) {
		return epochs, fmt.Errorf("active rows are\n%q\nwant\n%q", got, want)
	}
	return epochs, nil
}

// randomCatchUp takes an event's time or an infinity for the low watermark; no partition is behind.
func randomCatchUp(history *oracle.History, rng *rand.Rand) *stream.CatchUp {
	low := []stream.Micros{stream.NegInfinity, stream.Infinity}[rng.IntN(2)]
	lane := history.Lanes[rng.IntN(len(history.Lanes))]
	if n := len(lane.Records); n > 0 && rng.IntN(8) > 0 {
		if e := lane.Records[rng.IntN(n)].Event; e.HasTime {
			low = e.Time
		}
	}
	c := &stream.CatchUp{Watermark: low}
	for _, p := range history.Partitions() {
		at := low.Add(time.Duration(rng.IntN(3)) * time.Second)
		c.Partitions = append(c.Partitions, stream.Progress{Partition: p, Watermark: at})
	}
	return c
}

// unread gives parts that read nothing.
func unread(history *oracle.History, ends map[stream.Partition]string) (parts []stream.Part) {
	for _, p := range history.Partitions() {
		parts = append(parts, stream.Part{Partition: p, To: ends[p]})
	}
	return parts
}

// TestReleaseInSteps: while many rows close the release takes several epochs, of which each can be
// the first of another worker. Then the partitions are those that were recorded.
func TestReleaseInSteps(t *testing.T) {
	t.Parallel()
	cfg := join.Config{
		Rule:     join.Rule{Version: "v1", Kind: join.Full, Provisional: join.Never},
		MaxAhead: time.Hour, MaxSkew: time.Hour, MaxPairsPerKey: 10, CacheRows: 3, ClosingsMax: 2,
	}
	left := stream.Partition{Side: stream.Left, Source: "l"}
	right := stream.Partition{Side: stream.Right, Source: "r"}
	known := stream.Progress{Watermark: 9, Idle: true, LastEventAt: 77}
	c := &stream.CatchUp{Watermark: 8, Partitions: []stream.Progress{known, known}}
	c.Partitions[0].Partition, c.Partitions[1].Partition = left, right
	r := &run{cfg: cfg, store: newMemStore(), ends: map[stream.Partition]string{}}
	r.state = join.New(cfg, r.store.start)
	parts := []stream.Part{{Partition: left, To: "7"}, {Partition: right, To: "0"}}
	held := &stream.Batch{Held: c, Parts: slices.Clone(parts)}
	for i := range 7 {
		held.Parts[0].Records = append(held.Parts[0].Records, stream.Record{Event: stream.Event{
			ID: fmt.Sprint(i), Revision: 1, Key: fmt.Sprint(i), Time: stream.Micros(i), HasTime: true,
		}})
	}
	err := r.step(held)
	if r.state.Watermark() != stream.NegInfinity || r.state.Behind() {
		t.Errorf("a held watermark stands at %s, behind: %t", r.state.Watermark(), r.state.Behind())
	}
	steps := 0
	for ; err == nil && r.state.Watermark() < c.Watermark; steps++ {
		release := &stream.Batch{Release: c, Parts: slices.Clone(parts)}
		if !r.state.Moves(release) {
			t.Fatal("no epoch is due for a release")
		}
		err = errors.Join(r.step(release), r.commit())
		r.state = r.store.restart(cfg, steps%2 == 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if steps < 3 {
		t.Errorf("7 rows closed in %d epochs of 2", steps)
	}
	for i, p := range r.store.start.Progress {
		want := c.Partitions[i]
		want.From, want.To = parts[i].To, parts[i].To
		if p != want {
			t.Errorf("after the release %+v, want %+v", p, want)
		}
	}
	if n := len(r.store.active()); n != 7 {
		t.Errorf("%d results, want 7 that are final", n)
	}
}
