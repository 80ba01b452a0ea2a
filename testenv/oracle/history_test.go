package oracle

import (
	"reflect"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// splits is how many cuts of each confluent history are tried.
const splits = 4

// run plays epochs on a fresh model and hands each report to check.
func run(h *History, epochs []Epoch, check func(m *Model, rep Report)) *Model {
	m := NewModel(h.Rule, h.Partitions())
	for _, e := range epochs {
		rep := m.Step(e)
		if check != nil {
			check(m, rep)
		}
	}
	return m
}

func TestSameSeedSameHistory(t *testing.T) {
	t.Parallel()
	for _, flavour := range []Flavour{Confluent, Adversarial} {
		a, b := Generate(7, flavour), Generate(7, flavour)
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(a.Split(3), b.Split(3)) {
			t.Errorf("%s: seed 7 gave two histories", flavour)
		}
	}
}

// TestSplitKeepsEverything: every cut delivers the same records of each partition in order.
func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		h := Generate(seed, Adversarial)
		for cut := range uint64(splits) {
			got := make([][]stream.Record, len(h.Lanes))
			for _, e := range h.Split(cut) {
				for i, s := range e.Slices {
					got[i] = append(got[i], s.Records...)
				}
			}
			for i, lane := range h.Lanes {
				if len(got[i])+len(lane.Records) > 0 && !reflect.DeepEqual(got[i], lane.Records) {
					t.Fatalf("seed %d cut %d: %s differs", seed, cut, lane.Partition)
				}
			}
		}
	}
}

// TestHistoriesReachEverything: the random histories exercise each branch of the model.
func TestHistoriesReachEverything(t *testing.T) {
	t.Parallel()
	reached := map[string]int{}
	const seeds = 300
	for seed := range uint64(seeds) {
		for _, flavour := range []Flavour{Confluent, Adversarial} {
			h := Generate(seed, flavour)
			run(h, h.Split(seed), func(_ *Model, rep Report) { tally(reached, flavour, rep) })
		}
	}
	for _, want := range []string{
		"confluent duplicate", "confluent stale", "confluent expired",
		"adversarial duplicate", "adversarial stale", "adversarial ahead",
		"adversarial past_horizon", "adversarial sealed_revision", "adversarial far_future",
		"adversarial conflicting_revision", "adversarial not_json",
		"confluent -> matched", "confluent -> provisional", "confluent -> final",
		"confluent matched -> superseded", "confluent matched -> retracted",
		"confluent provisional -> retracted", "confluent provisional -> superseded",
		"confluent provisional -> final", "confluent retracted -> provisional",
		"confluent retracted -> final",
	} {
		if reached[want] < 3 {
			t.Errorf("%s: reached %d times in %d seeds, want at least 3", want, reached[want], seeds)
		}
	}
	t.Log(reached)
}

func tally(reached map[string]int, flavour Flavour, rep Report) {
	prefix := flavour.String() + " "
	reached[prefix+"duplicate"] += int(rep.Counts.Duplicate)
	reached[prefix+"stale"] += int(rep.Counts.Stale)
	reached[prefix+"ahead"] += int(rep.Counts.Ahead)
	reached[prefix+"expired"] += int(rep.Counts.Expired)
	reached[prefix+"accepted"] += int(rep.Counts.Accepted)
	for _, a := range append(rep.Corrections, rep.Quarantined...) {
		reached[prefix+string(a.Why)]++
	}
	for _, tr := range rep.Transitions {
		from := string(tr.From)
		if from != "" {
			from += " "
		}
		reached[prefix+from+"-> "+string(tr.To)]++
	}
}
