package join

import (
	"github.com/cespare/xxhash/v2"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// filter remembers, as a Bloom filter, which ids ever had a result, so that an id that never had
// one need not be looked up. It can only err by asking once too often.
type filter struct{ words []uint64 }

// filterBits keeps wrong answers under 1 % up to six million ids, in 8 MiB.
const filterBits = 1 << 26

func newFilter() *filter { return &filter{words: make([]uint64, filterBits/64)} }

func (f *filter) add(side stream.Side, id string) {
	hash, step := probes(side, id)
	for range 4 {
		bit := hash % filterBits
		f.words[bit/64] |= 1 << (bit % 64)
		hash += step
	}
}

func (f *filter) mayHold(side stream.Side, id string) bool {
	hash, step := probes(side, id)
	for range 4 {
		bit := hash % filterBits
		if f.words[bit/64]&(1<<(bit%64)) == 0 {
			return false
		}
		hash += step
	}
	return true
}

func probes(side stream.Side, id string) (hash, step uint64) {
	hash = xxhash.Sum64String(id) ^ uint64(side)*0x9e3779b97f4a7c15
	return hash, hash>>32 | 1
}

// mayBeSealed tells whether the id can have an active result that is not in memory.
func (s *State) mayBeSealed(side stream.Side, id string) bool {
	return s.results == nil || s.results.mayHold(side, id)
}
