package join

import "hash/maphash"

// index finds values by their names, as a map would. Loading a million rows after a restart is mostly
// three of these operations for each, and a map takes twice as long: it looks at the names of what it
// passes, which lie somewhere else in memory, where this looks at their hashes first.
//
// It is a table with open addressing and linear probing. What follows a value that is deleted moves
// up, so there are no graves. The seed of the hashes keeps names from being made to collide; nothing
// that can be seen from outside depends on it.
type index[V named] struct {
	slots []slot[V]
	count int
}

// named is a pointer to what has a name; nil is an empty slot.
type named interface {
	comparable
	name() string
}

type slot[V named] struct {
	hash  uint64
	value V
}

func hashOf(name string) uint64 { return maphash.String(indexSeed, name) }

// slotsMin is how many slots the smallest table has; all sizes are powers of two.
const slotsMin = 16

var indexSeed = maphash.MakeSeed()

// newIndex gives one with room for that many values.
func newIndex[V named](expected int) *index[V] {
	x := &index[V]{}
	size := slotsMin
	for size*2 < expected*3 {
		size *= 2
	}
	x.slots = make([]slot[V], size)
	return x
}

// len counts the values.
func (x *index[V]) len() int { return x.count }

// get gives the value of a name, nil for none.
func (x *index[V]) get(name string) V { return x.getHashed(name, hashOf(name)) }

// getHashed is get where the hash of the name is known.
func (x *index[V]) getHashed(name string, hash uint64) V { return x.slots[x.find(name, hash)].value }

// put adds a value, in the place of one of the same name.
func (x *index[V]) put(value V) { x.putHashed(value, hashOf(value.name())) }

// putHashed is put where the hash of the name is known.
func (x *index[V]) putHashed(value V, hash uint64) {
	name := value.name()
	at := x.find(name, hash)
	var none V
	if x.slots[at].value == none {
		if 3*(x.count+1) > 2*len(x.slots) {
			x.grow()
			at = x.find(name, hash)
		}
		x.count++
	}
	x.slots[at] = slot[V]{hash, value}
}

// first gives the slot at which the search for a hash begins.
func (x *index[V]) first(hash uint64) *slot[V] { return &x.slots[int(hash)&(len(x.slots)-1)] }

// delete removes the value of a name, if there is one.
func (x *index[V]) delete(name string) {
	var none V
	at := x.find(name, hashOf(name))
	if x.slots[at].value == none {
		return
	}
	x.count--
	mask := len(x.slots) - 1
	for next := at; ; {
		next = (next + 1) & mask
		s := x.slots[next]
		if s.value == none {
			break
		}
		// It may move to the gap unless its own place lies behind that.
		if own := int(s.hash) & mask; (next-own)&mask >= (next-at)&mask {
			x.slots[at] = s
			at = next
		}
	}
	x.slots[at] = slot[V]{}
}

// find gives the slot of a name, or the empty one where it would be.
func (x *index[V]) find(name string, hash uint64) int {
	var none V
	mask := len(x.slots) - 1
	at := int(hash) & mask
	for {
		s := &x.slots[at]
		if s.value == none || s.hash == hash && s.value.name() == name {
			return at
		}
		at = (at + 1) & mask
	}
}

func (x *index[V]) grow() {
	var none V
	old := x.slots
	x.slots = make([]slot[V], 2*len(old))
	mask := len(x.slots) - 1
	for _, s := range old {
		if s.value == none {
			continue
		}
		at := int(s.hash) & mask
		for x.slots[at].value != none {
			at = (at + 1) & mask
		}
		x.slots[at] = s
	}
}
