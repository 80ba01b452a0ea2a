package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/store"
)

// cluster is the leases of shards, changed by workers in turns as the store would.
type cluster struct {
	leases []store.Lease
	// freeFor counts turns since a shard was released.
	freeFor []int
}

func newCluster(shards int) *cluster {
	c := &cluster{freeFor: make([]int, shards)}
	for i := range shards {
		c.leases = append(c.leases, store.Lease{Shard: int32(i)})
	}
	return c
}

// turn lets one worker look once, and hand over what it is asked for.
func (c *cluster) turn(me string, only func(shard int32) bool) {
	var seen []store.Lease
	for _, l := range c.leases {
		if only == nil || only(l.Shard) {
			seen = append(seen, l)
		}
	}
	p := balance(me, seen, func(shard int32) bool { return c.freeFor[shard] > 10 })
	for _, shard := range p.take {
		c.leases[shard] = store.Lease{Shard: shard, Worker: me, Running: true}
	}
	for _, l := range p.ask {
		c.leases[l.Shard].RequestedBy = me
	}
	for i := range c.leases {
		l := &c.leases[i]
		c.freeFor[i]++
		if !l.Free() {
			c.freeFor[i] = 0
		}
		if l.Worker == me && l.Running && l.RequestedBy != "" {
			*l = store.Lease{Shard: l.Shard, Worker: l.RequestedBy}
		}
	}
}

func (c *cluster) die(worker string) {
	for i := range c.leases {
		if c.leases[i].Worker == worker {
			c.leases[i] = store.Lease{Shard: int32(i)}
		}
	}
}

func (c *cluster) loads() map[string]int {
	loads := map[string]int{}
	for _, l := range c.leases {
		loads[l.Worker]++
	}
	return loads
}

// TestSharesSettle lets workers come and go at random: soon after, every shard is run, loads differ
// by no more than one, and nothing moves any more.
func TestSharesSettle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		shards := 1 + rng.IntN(20)
		c := newCluster(shards)
		var workers []string
		for step := range 6 {
			if len(workers) < 2 || rng.IntN(3) > 0 {
				workers = append(workers, fmt.Sprint("w", step))
			} else {
				gone := rng.IntN(len(workers))
				c.die(workers[gone])
				workers = slices.Delete(workers, gone, gone+1)
			}
			for range 30 {
				for _, i := range rng.Perm(len(workers)) {
					c.turn(workers[i], nil)
				}
			}
			loads := c.loads()
			low, high := shards, 0
			for _, w := range workers {
				low, high = min(low, loads[w]), max(high, loads[w])
			}
			if loads[""] > 0 || high > low+1 {
				t.Fatalf("seed %d: %d shards among %v: %v", seed, shards, workers, loads)
			}
			before := slices.Clone(c.leases)
			for _, w := range workers {
				c.turn(w, nil)
			}
			if !slices.Equal(c.leases, before) {
				t.Fatalf("seed %d: leases move without need:\n%+v\n%+v", seed, before, c.leases)
			}
		}
	}
}

// TestNoShardStaysFree: workers that may run different shards reckon different shares, and the
// free ones are run all the same.
func TestNoShardStaysFree(t *testing.T) {
	t.Parallel()
	c := newCluster(8)
	few := func(shard int32) bool { return shard < 4 }
	for range 40 {
		c.turn("all", nil)
		c.turn("few", few)
	}
	if loads := c.loads(); loads[""] != 0 || loads["few"] != 2 || loads["all"] != 6 {
		t.Errorf("loads %v", loads)
	}
}
