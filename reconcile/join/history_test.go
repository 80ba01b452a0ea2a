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

// TestHistoriesEqualTheModel runs random histories through the state machine with random cache
// sizes, epochs in flight and restarts, and compares every epoch with the naive model.
func TestHistoriesEqualTheModel(t *testing.T) {
	t.Parallel()
	for seed := range oracle.Seeds(t, 600, 1) {
		for _, flavour := range []oracle.Flavour{oracle.Confluent, oracle.Adversarial} {
			history := oracle.Generate(seed, flavour)
			epochs := history.Split(seed)
			if err := compareWithModel(history, epochs, seed); err != nil {
				t.Fatalf("seed %d (replay with TALLY_SEED=%d), %s: %v\n%s", seed, seed, flavour, err,
					history.Describe(epochs))
			}
		}
	}
}

func configOf(r oracle.Rule, rng *rand.Rand) join.Config {
	cfg := join.Config{
		Rule: join.Rule{
			Version: r.Version, Kind: join.Kind(r.Join), Before: r.Before, After: r.After,
			Lateness: r.Lateness, Provisional: join.Policy(r.Provisional),
		},
		MaxAhead: r.MaxAhead, MaxSkew: r.MaxSkew, MaxPairsPerKey: 100000,
		CacheRows: 1 << 20, ClosingsMax: 1 << 20, OutOfOrderness: r.OutOfOrderness,
	}
	if rng.IntN(2) == 0 {
		cfg.CacheRows = rng.IntN(20)
	}
	return cfg
}

// compareWithModel drives the state as the loop does: an epoch may be joined before the one
// before it is committed, and a restart loses everything that is not.
func compareWithModel(history *oracle.History, epochs []oracle.Epoch, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	cfg := configOf(history.Rule, rng)
	store := newMemStore()
	model := oracle.NewModel(history.Rule, history.Partitions())
	state := join.New(cfg, store.start)
	ends := map[stream.Partition]string{}
	var inFlight *stream.Delta
	for i, epoch := range epochs {
		batch := batchOf(epoch, ends)
		if state.MustSpill() {
			if inFlight != nil {
				if err := store.commit(inFlight); err != nil {
					return fmt.Errorf("epoch %d: %w", i, err)
				}
				state.Committed(inFlight.Epoch)
				inFlight = nil
			}
			store.spill()
			state.Spill()
		}
		needs := state.Needs(batch)
		found := store.fetch(needs, state.Watermark())
		delta := state.Step(batch, found)
		if inFlight != nil {
			if err := store.commit(inFlight); err != nil {
				return fmt.Errorf("epoch %d: %w", i, err)
			}
			state.Committed(inFlight.Epoch)
		}
		inFlight = delta
		if err := sameReport(delta, model.Step(epoch)); err != nil {
			return fmt.Errorf("epoch %d of %+v: %w", i+1, cfg, err)
		}
		if rng.IntN(3) > 0 && i+1 < len(epochs) {
			continue
		}
		if err := store.commit(inFlight); err != nil {
			return fmt.Errorf("epoch %d: %w", i+1, err)
		}
		state.Committed(inFlight.Epoch)
		inFlight = nil
		if got, want := store.active(), model.Active(); !slices.Equal(got, want) {
			return fmt.Errorf("after epoch %d of %+v active rows are\n%q\nwant\n%q", i+1, cfg, got, want)
		}
		if rng.IntN(4) == 0 {
			state = restarted(cfg, store, rng)
		}
	}
	return nil
}

func restarted(cfg join.Config, store *memStore, rng *rand.Rand) *join.State {
	cfg.CacheRows = rng.IntN(1000)
	return store.restart(cfg, rng.IntN(2) == 0)
}

func batchOf(epoch oracle.Epoch, ends map[stream.Partition]string) *stream.Batch {
	batch := &stream.Batch{Clock: epoch.Clock}
	for _, slice := range epoch.Slices {
		if n := len(slice.Records); n > 0 {
			ends[slice.Partition] = slice.Records[n-1].Position
		}
		batch.Parts = append(batch.Parts, stream.Part{
			Partition: slice.Partition, Records: slice.Records, To: ends[slice.Partition],
			Sealed: slices.Contains(epoch.Sealed, slice.Partition),
		})
	}
	return batch
}

// sameReport compares all that an epoch changes, and in which order its rules allow.
func sameReport(d *stream.Delta, want oracle.Report) error {
	if d.Counts != want.Counts {
		return fmt.Errorf("counts\n%+v, want\n%+v; changes %v, want %v; W %s to %s, want %s to %s",
			d.Counts, want.Counts, d.Changes, want.Transitions, d.WatermarkBefore, d.WatermarkAfter,
			want.WatermarkBefore, want.WatermarkAfter)
	}
	if d.WatermarkBefore != want.WatermarkBefore || d.WatermarkAfter != want.WatermarkAfter {
		return fmt.Errorf("watermark %s to %s, want %s to %s", d.WatermarkBefore, d.WatermarkAfter,
			want.WatermarkBefore, want.WatermarkAfter)
	}
	var changed, expected []string
	for _, c := range d.Changes {
		changed = append(changed, fmt.Sprintf("%s %s -> %s", name(c.Left), name(c.Right), c.Status))
	}
	for _, tr := range want.Transitions {
		expected = append(expected, fmt.Sprintf("%s -> %s", tr.Result, tr.To))
	}
	slices.Sort(changed)
	slices.Sort(expected)
	if !slices.Equal(changed, expected) {
		return fmt.Errorf("transitions %q\nwant %q", changed, expected)
	}
	return sameAsides(d, want)
}

func sameAsides(d *stream.Delta, want oracle.Report) error {
	var corrections, quarantined, wantCorrections, wantQuarantined []string
	for _, c := range d.Corrections {
		corrections = append(corrections,
			fmt.Sprintf("%s@%s %s/%d %s", c.Partition, c.Position, c.ID, c.Revision, c.Reason))
	}
	for _, q := range d.Quarantined {
		quarantined = append(quarantined, fmt.Sprintf("%s@%s %s", q.Partition, q.Position, q.Reason))
	}
	for _, a := range want.Corrections {
		wantCorrections = append(wantCorrections, fmt.Sprintf("%s@%s %s/%d %s", a.Partition,
			a.Record.Position, a.Record.Event.ID, a.Record.Event.Revision, a.Why))
	}
	for _, a := range want.Quarantined {
		wantQuarantined = append(wantQuarantined,
			fmt.Sprintf("%s@%s %s", a.Partition, a.Record.Position, a.Why))
	}
	for _, lines := range [][]string{corrections, quarantined, wantCorrections, wantQuarantined} {
		slices.Sort(lines)
	}
	if !slices.Equal(corrections, wantCorrections) {
		return fmt.Errorf("corrections %q, want %q", corrections, wantCorrections)
	}
	if !slices.Equal(quarantined, wantQuarantined) {
		return fmt.Errorf("quarantined %q, want %q", quarantined, wantQuarantined)
	}
	return nil
}
