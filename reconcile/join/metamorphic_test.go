package join_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// TestRunsOfOneHistoryAgree runs each confluent history under other splits into epochs, with other
// caches, held back by other numbers of closings, with epochs in flight and restarts: the results
// that are active at the end must be the same.
func TestRunsOfOneHistoryAgree(t *testing.T) {
	t.Parallel()
	var sometimes reached
	runs := 0
	for seed := range oracle.Seeds(t, 60, 1) {
		runs++
		history := oracle.Generate(seed, oracle.Confluent)
		want, err := oneGo(history)
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d), in one go: %v", seed, seed, err)
		}
		for variant := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, variant))
			r := newRun(history, rng)
			epochs := history.Split(rng.Uint64())
			got, err := r.all(epochs)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("active rows are\n%q\nwant\n%q", got, want)
			}
			if err != nil {
				t.Fatalf("seed %d (replay with TALLY_SEED=%d), variant %d of %+v: %v\n%s",
					seed, seed, variant, r.cfg, err, history.Describe(epochs))
			}
			sometimes.add(r.reached)
		}
	}
	if runs > 1 && (sometimes.behind == 0 || sometimes.restarts == 0 || sometimes.lookups == 0) {
		t.Errorf("some branches were never reached: %+v", sometimes)
	}
}

// reached counts what a run went through.
type reached struct{ behind, restarts, lookups int }

func (r *reached) add(o reached) {
	r.behind += o.behind
	r.restarts += o.restarts
	r.lookups += o.lookups
}

// run is one way to run a history.
type run struct {
	cfg      join.Config
	rng      *rand.Rand
	store    *memStore
	state    *join.State
	inFlight *stream.Delta
	ends     map[stream.Partition]string
	// last is the newest batch: what empty epochs are made of.
	last    *stream.Batch
	reached reached
	// wide runs read all that is due at once, so that nothing holds the watermark back.
	wide bool
	// check, where set, sees every epoch.
	check func(*stream.Delta) error
}

// newRun varies all that must not change a result.
func newRun(history *oracle.History, rng *rand.Rand) *run {
	cfg := configOf(history.Rule, rng)
	cfg.CacheRows = []int{0, 1, 3, 10, 1 << 20}[rng.IntN(5)]
	cfg.ClosingsMax = 1 + rng.IntN(5)
	store := newMemStore()
	return &run{
		cfg: cfg, rng: rng, store: store, state: join.New(cfg, store.start),
		ends: map[stream.Partition]string{},
	}
}

// oneGo runs a history with everything in memory and each epoch committed before the next.
func oneGo(history *oracle.History) ([]string, error) {
	r := newRun(history, rand.New(rand.NewPCG(0, 0)))
	r.cfg.CacheRows, r.cfg.ClosingsMax = 1<<20, 1<<20
	r.state, r.rng = join.New(r.cfg, r.store.start), nil
	return r.all(history.Split(1))
}

// all runs the epochs, with empty ones between and at the end while the watermark is behind.
func (r *run) all(epochs []oracle.Epoch) ([]string, error) {
	for _, epoch := range epochs {
		if err := r.step(batchOf(epoch, r.ends)); err != nil {
			return nil, err
		}
		if r.state.Behind() && r.sometimes(2) {
			if err := r.step(r.empty()); err != nil {
				return nil, err
			}
		}
	}
	for r.state.Behind() {
		if err := r.step(r.empty()); err != nil {
			return nil, err
		}
	}
	if err := r.commit(); err != nil {
		return nil, err
	}
	return r.store.active(), nil
}

func (r *run) empty() *stream.Batch {
	r.reached.behind++
	b := &stream.Batch{Clock: r.last.Clock, Parts: slices.Clone(r.last.Parts)}
	for i := range b.Parts {
		b.Parts[i].Records = nil
	}
	return b
}

// step joins a batch as the loop does: the epoch before it is stored only after it was joined, or
// at once. Now and then the worker stops and another goes on from the store.
func (r *run) step(b *stream.Batch) error {
	if r.state.MustSpill() {
		if err := r.commit(); err != nil {
			return err
		}
		r.store.spill()
		r.state.Spill()
	}
	needs := r.state.Needs(b)
	if !needs.Empty() {
		r.reached.lookups++
	}
	if needs.DueMax = 1 << 20; !r.wide && r.sometimes(2) {
		needs.DueMax = 1 + r.rng.IntN(5)
	}
	delta := r.state.Step(b, r.store.fetch(needs, r.state.Watermark()))
	r.last = b
	if r.check != nil {
		if err := r.check(delta); err != nil {
			return fmt.Errorf("epoch %d: %w", delta.Epoch, err)
		}
	}
	if err := r.commit(); err != nil {
		return err
	}
	r.inFlight = delta
	if r.rng == nil || r.rng.IntN(3) == 0 {
		if err := r.commit(); err != nil {
			return err
		}
		if r.sometimes(3) {
			r.reached.restarts++
			r.state = r.store.restart(r.cfg, r.sometimes(2))
		}
	}
	return nil
}

func (r *run) sometimes(n int) bool { return r.rng != nil && r.rng.IntN(n) == 0 }

func (r *run) commit() error {
	if r.inFlight == nil {
		return nil
	}
	if err := r.store.commit(r.inFlight); err != nil {
		return err
	}
	r.state.Committed(r.inFlight.Epoch)
	r.inFlight = nil
	return nil
}
