package reconcile

import (
	"cmp"
	"slices"

	"github.com/tallystick/tallystick/store"
)

// plan is what a worker does next about the shards it does not run.
type plan struct {
	// take are shards that are free, or that were handed over to it.
	take []int32
	// ask are shards that others have too many of, with their holders.
	ask []store.Lease
}

// balance shares the shards among the workers that hold or ask for some. Every worker reckons for
// itself, from the same leases: a fair share is what each would have, rounded up. A worker takes
// free shards up to its share at once, and more of those that have been free for a while (stale),
// which nobody else wants. Below its share it asks whoever has the most, as long as that one then
// still has as many as it: so nothing is handed to and fro.
func balance(me string, leases []store.Lease, stale func(shard int32) bool) plan {
	loads := map[string]int{me: 0}
	for _, l := range leases {
		if l.Free() {
			continue
		}
		// A shard that is asked for counts for the worker that gets it.
		loads[cmp.Or(l.RequestedBy, l.Worker)]++
		loads[l.Worker] += 0
	}
	share := (len(leases) + len(loads) - 1) / len(loads)
	var p plan
	for _, l := range leases {
		switch {
		case l.Worker == me && !l.Running:
			p.take = append(p.take, l.Shard) // it counts already
		case l.Free() && (loads[me] < share || stale(l.Shard)):
			p.take = append(p.take, l.Shard)
			loads[me]++
		}
	}
	for loads[me] < share {
		l, ok := askable(me, leases, loads, p.ask)
		if !ok {
			break
		}
		p.ask = append(p.ask, l)
		loads[l.Worker]--
		loads[me]++
	}
	return p
}

// askable gives a shard of the worker that has the most, the last one of it.
func askable(
	me string, leases []store.Lease, loads map[string]int, asked []store.Lease,
) (best store.Lease, ok bool) {
	for _, l := range leases {
		if !l.Running || l.RequestedBy != "" || l.Worker == me || loads[l.Worker] <= loads[me]+1 ||
			slices.ContainsFunc(asked, func(a store.Lease) bool { return a.Shard == l.Shard }) {
			continue
		}
		if !ok || loads[l.Worker] >= loads[best.Worker] {
			best, ok = l, true
		}
	}
	return best, ok
}
