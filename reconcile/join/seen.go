package join

import (
	"github.com/cespare/xxhash/v2"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Seen remembers which ids have had a result or have rows outside memory, and which keys have such rows,
// so that others need not be looked up. It is a row of Bloom filters: it can only err by asking once too
// often, and it does so more often once it is full, at some hundred million names.
type Seen struct{ filters []*filter }

// filter gives about 1 % wrong answers when it is full.
type filter struct {
	words           []uint64
	count, capacity int
}

const (
	// firstBits is the size of the first filter, 128 KiB; each one after it is four times as large,
	// up to 128 MiB.
	firstBits  = 1 << 20
	filtersMax = 6
	// bitsPerID and probesPerID give 1.2 % wrong answers in a full filter.
	bitsPerID   = 10
	probesPerID = 4
)

// NewSeen gives one that has seen nothing.
func NewSeen() *Seen { return &Seen{filters: []*filter{newFilter(firstBits)}} }

func newFilter(bits int) *filter {
	return &filter{words: make([]uint64, bits/64), capacity: bits / bitsPerID}
}

// Add remembers an id.
func (s *Seen) Add(side stream.Side, id string) {
	if s.mayHold(side, id) {
		return
	}
	f := s.filters[len(s.filters)-1]
	if f.count == f.capacity && len(s.filters) < filtersMax {
		f = newFilter(4 * 64 * len(f.words))
		s.filters = append(s.filters, f)
	}
	f.count++
	f.add(probes(side, id))
}

// AddKey remembers a key.
func (s *Seen) AddKey(key string) { s.Add(keys, key) }

// keys stands for a side where a name is a key.
const keys stream.Side = 2

// mayHold tells whether the id may have been added; false is certain.
func (s *Seen) mayHold(side stream.Side, id string) bool {
	hash, step := probes(side, id)
	for _, f := range s.filters {
		if f.mayHold(hash, step) {
			return true
		}
	}
	return false
}

func (f *filter) add(hash, step uint64) {
	bits := uint64(64 * len(f.words))
	for range probesPerID {
		bit := hash % bits
		f.words[bit/64] |= 1 << (bit % 64)
		hash += step
	}
}

func (f *filter) mayHold(hash, step uint64) bool {
	bits := uint64(64 * len(f.words))
	for range probesPerID {
		bit := hash % bits
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

// Know tells the state of the ids that had an active result when it began and, if it began as spilled,
// of the ids and keys of the live rows. Until then it looks all up that is not in memory.
func (s *State) Know(before *Seen) { s.before = before }

// mayBeStored tells whether an id can have a row or an active result that is not in memory, or a key a
// row.
func (s *State) mayBeStored(side stream.Side, name string) bool {
	return s.before == nil || s.before.mayHold(side, name) || s.since.mayHold(side, name)
}
