package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Flavour says how hard a history may be.
type Flavour int

const (
	// Confluent histories have no event that any split into epochs could make late, sealed or
	// forgotten, no conflicting contents and nothing far ahead, and they are sealed: the active
	// rows at their end depend on the events alone, not on the number of shards either, and
	// [Batch] gives them.
	Confluent Flavour = iota
	// Adversarial histories hold anything.
	Adversarial
)

// String names the flavour.
func (f Flavour) String() string {
	if f == Confluent {
		return "confluent"
	}
	return "adversarial"
}

// History is a small random history, the same for the same seed and flavour.
type History struct {
	Seed    uint64
	Flavour Flavour
	Rule    Rule
	// Lanes holds all records of each partition, in partition order. Positions are the ordinals
	// within the partition, in decimal, counted from 1.
	Lanes []Slice
	// Sealed histories end with every partition at +infinity.
	Sealed bool
	// SealEarly makes Split seal each partition as soon as its last record is read, instead of all
	// at the end.
	SealEarly bool

	start stream.Micros
	turns []turn
}

// turn is one record in the order in which all were made.
type turn struct {
	lane  int
	clock stream.Micros
}

// Partitions names the partitions, in partition order.
func (h *History) Partitions() []stream.Partition {
	var all []stream.Partition
	for _, l := range h.Lanes {
		all = append(all, l.Partition)
	}
	return all
}

// Split cuts the history into epochs; another seed gives another cut of the same records. The cut
// is all at once, one by one, in runs of the order in which the records were made, or with each
// partition at its own pace.
func (h *History) Split(seed uint64) []Epoch {
	c := &cutter{h: h, rng: rand.New(rand.NewPCG(seed, 1)), clock: h.start}
	c.read = make([]int, len(h.Lanes))
	c.clocks = make([][]stream.Micros, len(h.Lanes))
	for _, t := range h.turns {
		c.clocks[t.lane] = append(c.clocks[t.lane], t.clock)
	}
	switch c.rng.IntN(5) {
	case 0:
		c.inRuns(func() int { return len(h.turns) })
	case 1:
		c.inRuns(func() int { return 1 })
	case 2:
		longest := 1 + c.rng.IntN(12)
		c.inRuns(func() int { return 1 + c.rng.IntN(longest) })
	case 3, 4:
		c.atOwnPace()
	}
	c.seal()
	return c.epochs
}

// Describe gives the rule and the epochs as text, for the report of a failure.
func (h *History) Describe(epochs []Epoch) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s history of seed %d, rule %+v\n", h.Flavour, h.Seed, h.Rule)
	for i, e := range epochs {
		fmt.Fprintf(&b, "epoch %d at %s, seals %v\n", i+1, e.Clock, e.Sealed)
		for _, s := range e.Slices {
			for _, r := range s.Records {
				fmt.Fprintf(&b, "  %s@%s %s%s\n", s.Partition, r.Position, r.Raw, r.Reason)
			}
		}
	}
	return b.String()
}

// cutter takes records off the lanes and makes epochs of them.
type cutter struct {
	h      *History
	rng    *rand.Rand
	read   []int
	clocks [][]stream.Micros
	clock  stream.Micros
	epochs []Epoch
}

// inRuns cuts the records in the order in which they were made.
func (c *cutter) inRuns(length func() int) {
	for turns := c.h.turns; len(turns) > 0; {
		n := min(length(), len(turns))
		take := make([]int, len(c.h.Lanes))
		for _, t := range turns[:n] {
			take[t.lane]++
		}
		c.epoch(take)
		turns = turns[n:]
	}
}

// atOwnPace lets partitions run ahead of each other, some until the others have nothing left to
// read, and some epochs read nothing.
func (c *cutter) atOwnPace() {
	pace := make([]int, len(c.h.Lanes))
	for i := range pace {
		pace[i] = pick(c.rng, 1, 2, 3, 9)
	}
	for left := len(c.h.turns); left > 0; {
		take, before := make([]int, len(pace)), left
		for i, lane := range c.h.Lanes {
			take[i] = min(c.rng.IntN(pace[i]), len(lane.Records)-c.read[i])
			left -= take[i]
		}
		if c.epoch(take); left == before {
			pace[c.rng.IntN(len(pace))]++
		}
	}
}

func (c *cutter) epoch(take []int) {
	var slices []Slice
	for i, n := range take {
		lane, from := c.h.Lanes[i], c.read[i]
		for _, clock := range c.clocks[i][from : from+n] {
			c.clock = max(c.clock, clock)
		}
		slices = append(slices, Slice{lane.Partition, lane.Records[from : from+n]})
		c.read[i] += n
	}
	c.epochs = append(c.epochs, Epoch{Clock: c.clock, Slices: slices})
}

// seal puts the ends of the partitions into the epochs.
func (c *cutter) seal() {
	if !c.h.Sealed {
		return
	}
	if c.rng.IntN(2) == 0 {
		c.epoch(make([]int, len(c.h.Lanes)))
	}
	for i, lane := range c.h.Lanes {
		at := &c.epochs[len(c.epochs)-1]
		if c.h.SealEarly {
			at = &c.epochs[lastRead(c.epochs, i)]
		}
		at.Sealed = append(at.Sealed, lane.Partition)
	}
}

// lastRead gives the epoch that reads the last record of a lane, the first where it has none.
func lastRead(epochs []Epoch, lane int) int {
	last := 0
	for i, e := range epochs {
		if len(e.Slices[lane].Records) > 0 {
			last = i
		}
	}
	return last
}
