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

// TestShardsTogetherEqualTheModel runs each confluent history in 1, 2, 3 and 8 shards, each with
// epochs, caches and restarts of its own. What is active in all of them is what one model, which
// knows no shards, ends with.
func TestShardsTogetherEqualTheModel(t *testing.T) {
	t.Parallel()
	var total shardsReached
	runs := 0
	for seed := range oracle.Seeds(t, 120, 1) {
		runs++
		history := oracle.Generate(seed, oracle.Confluent)
		model := oracle.NewModel(history.Rule, history.Partitions())
		for _, epoch := range history.Split(1) {
			model.Step(epoch)
		}
		want := model.Active()
		for _, shards := range []int32{1, 2, 3, 8} {
			got, reached, err := inShards(history, shards)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("active rows are\n%q\nwant\n%q", got, want)
			}
			if err != nil {
				t.Fatalf("seed %d (replay with TALLY_SEED=%d), %d shards: %v\n%s", seed, seed, shards,
					err, history.Describe(history.Split(seed)))
			}
			total.add(reached)
		}
	}
	t.Logf("%+v", total)
	if runs > 1 && total.lacks() {
		t.Errorf("some branches were never reached: %+v", total)
	}
}

// shardsReached counts what sharded runs went through: events that left the shard they were held
// in, markers of ids that a shard did not hold, markers that gave way to an event of the shard, and
// tombstones without a key that other shards speak for.
type shardsReached struct{ moves, overtaking, returns, keyless int }

func (r *shardsReached) add(o shardsReached) {
	r.moves += o.moves
	r.overtaking += o.overtaking
	r.returns += o.returns
	r.keyless += o.keyless
}

func (r *shardsReached) lacks() bool {
	return r.moves == 0 || r.overtaking == 0 || r.returns == 0 || r.keyless == 0
}

// inShards runs a history in so many shards and gives the active rows of all of them, sorted.
func inShards(history *oracle.History, shards int32) ([]string, shardsReached, error) {
	var all []string
	var reached shardsReached
	spoken := int64(0)
	for shard := range shards {
		rng := rand.New(rand.NewPCG(history.Seed, uint64(shards)<<8|uint64(shard)))
		r := newRun(history, rng)
		r.cfg.Shard, r.cfg.Shards = shard, shards
		r.state = join.New(r.cfg, r.store.start)
		r.check = func(d *stream.Delta) error {
			reached.look(d, r.cfg)
			spoken += d.Counts.Read - d.Counts.OutOfShard
			if len(d.Corrections)+len(d.Quarantined) > 0 {
				return fmt.Errorf("set aside %v %v", d.Corrections, d.Quarantined)
			}
			return ownResults(d, r.cfg)
		}
		active, err := r.all(history.Split(rng.Uint64()))
		if err != nil {
			return nil, reached, fmt.Errorf("shard %d of %+v: %w", shard, r.cfg, err)
		}
		all = append(all, active...)
	}
	slices.Sort(all)
	return all, reached, accountedFor(history, spoken, int64(shards))
}

// look counts what an epoch did with the keys of other shards.
func (r *shardsReached) look(d *stream.Delta, cfg join.Config) {
	owned := func(key string) bool {
		return key == "" || stream.ShardOf(key, cfg.Shards) == cfg.Shard
	}
	for _, added := range d.Added {
		at := slices.IndexFunc(d.Retired, func(old *stream.BufferRow) bool {
			return old.Side == added.Side && old.ID == added.ID
		})
		switch {
		case added.Key == "" && cfg.Shards > 1 && at < 0:
			r.keyless++
		case at < 0 && !owned(added.Key):
			r.overtaking++
		case at >= 0 && owned(d.Retired[at].Key) && !owned(added.Key):
			r.moves++
		case at >= 0 && !owned(d.Retired[at].Key) && owned(added.Key):
			r.returns++
		}
	}
}

// ownResults refuses results under a key of another shard.
func ownResults(d *stream.Delta, cfg join.Config) error {
	for _, c := range d.Changes {
		if owner := stream.ShardOf(c.Key, cfg.Shards); owner != cfg.Shard {
			return fmt.Errorf("result %s %s of key %q, which shard %d owns", name(c.Left),
				name(c.Right), c.Key, owner)
		}
	}
	return nil
}

// accountedFor holds what the shards together did not count as out of shard to the records: one
// shard speaks for each that has a key.
func accountedFor(history *oracle.History, spoken, shards int64) error {
	var keyed, keyless int64
	for _, lane := range history.Lanes {
		for _, r := range lane.Records {
			if r.Event.Key == "" {
				keyless++
			} else {
				keyed++
			}
		}
	}
	if spoken < keyed || spoken > keyed+shards*keyless {
		return fmt.Errorf("%d records with a key and %d without are accounted for %d times", keyed,
			keyless, spoken)
	}
	return nil
}

// TestCacheNeverChangesAShard runs adversarial histories in shards, once with everything in memory
// and once with a small cache, epochs in flight and restarts: every epoch must change the same. And
// over all shards each record that is no event, or too far ahead, is quarantined once.
func TestCacheNeverChangesAShard(t *testing.T) {
	t.Parallel()
	for seed := range oracle.Seeds(t, 120, 1) {
		history := oracle.Generate(seed, oracle.Adversarial)
		epochs, shards := history.Split(seed), int32(2+seed%3)
		var asides []string
		var err error
		for shard := int32(0); shard < shards && err == nil; shard++ {
			var deltas []*stream.Delta
			if deltas, err = cachedOrNot(history, epochs, shard, shards); err != nil {
				err = fmt.Errorf("shard %d: %w", shard, err)
			}
			for _, d := range deltas {
				asides = append(asides, refused(d)...)
			}
		}
		slices.Sort(asides)
		if want := refusable(history, epochs); err == nil && !slices.Equal(asides, want) {
			err = fmt.Errorf("quarantined are\n%q\nwant\n%q", asides, want)
		}
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d) in %d shards: %v\n%s", seed, seed, shards,
				err, history.Describe(epochs))
		}
	}
}

// cachedOrNot gives the deltas of a shard that holds everything in memory, compared with those of
// one that does not.
func cachedOrNot(
	history *oracle.History, epochs []oracle.Epoch, shard, shards int32,
) ([]*stream.Delta, error) {
	var deltas []*stream.Delta
	rng := rand.New(rand.NewPCG(history.Seed, uint64(shard)))
	for _, cache := range []int{1 << 20, rng.IntN(4)} {
		r := newRun(history, rng)
		r.cfg.CacheRows, r.cfg.ClosingsMax, r.wide = cache, 1<<20, true
		r.cfg.Shard, r.cfg.Shards = shard, shards
		r.state = join.New(r.cfg, r.store.start)
		r.check = func(d *stream.Delta) error {
			if int64(len(deltas)) < d.Epoch {
				deltas = append(deltas, d)
				return nil
			}
			if got, want := effects(d), effects(deltas[d.Epoch-1]); !slices.Equal(got, want) {
				return fmt.Errorf("with a cache of %d changes are\n%q\nwithout limit\n%q", cache, got, want)
			}
			return nil
		}
		if _, err := r.all(epochs); err != nil {
			return nil, err
		}
	}
	return deltas, nil
}

// effects gives all that an epoch changes as lines.
func effects(d *stream.Delta) []string {
	lines := []string{fmt.Sprintf("%+v W %s", d.Counts, d.WatermarkAfter)}
	for _, p := range d.Progress {
		lines = append(lines, fmt.Sprintf("%+v", p))
	}
	for _, c := range d.Changes {
		lines = append(lines, fmt.Sprintf("%x %s %s", c.MatchID, c.Status, c.Cause))
	}
	for _, c := range d.Corrections {
		lines = append(lines, fmt.Sprintf("correction %+v", c))
	}
	for _, q := range d.Quarantined {
		lines = append(lines, fmt.Sprintf("quarantined %+v", q))
	}
	var rows []string
	for i := range d.Added {
		rows = append(rows, fmt.Sprintf("added %+v", unspilled(d.Added[i])))
	}
	for _, r := range d.Retired {
		rows = append(rows, fmt.Sprintf("retired %+v", unspilled(*r)))
	}
	for _, r := range d.Expired {
		rows = append(rows, fmt.Sprintf("expired %+v", unspilled(*r)))
	}
	slices.Sort(rows)
	return append(lines, rows...)
}

// refused gives what an epoch quarantined whatever is known of other events.
func refused(d *stream.Delta) (lines []string) {
	for _, q := range d.Quarantined {
		if q.Reason != stream.ConflictingRevision {
			lines = append(lines, fmt.Sprintf("%s@%s %s", q.Partition, q.Position, q.Reason))
		}
	}
	return lines
}

// refusable gives what any number of shards together must have refused, sorted.
func refusable(history *oracle.History, epochs []oracle.Epoch) (lines []string) {
	for _, epoch := range epochs {
		for _, s := range epoch.Slices {
			for _, r := range s.Records {
				reason := r.Reason
				if r.Event.HasTime && r.Event.Time > epoch.Clock.Add(history.Rule.MaxAhead) {
					reason = stream.FarFuture
				}
				if reason != "" {
					lines = append(lines, fmt.Sprintf("%s@%s %s", s.Partition, r.Position, reason))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}
