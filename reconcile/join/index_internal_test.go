package join

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// TestIndexIsAMap does the same random things to an index and to a map.
func TestIndexIsAMap(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	x, want := newIndex[*group](0), map[string]*group{}
	for range 300_000 {
		name := strconv.Itoa(rng.IntN(2000))
		switch rng.IntN(5) {
		case 0, 1:
			g := &group{key: name}
			x.put(g)
			want[name] = g
		case 2, 3:
			x.delete(name)
			delete(want, name)
		}
		if x.get(name) != want[name] || x.len() != len(want) {
			t.Fatalf("seed %d: index and map differ at %s", seed, name)
		}
	}
	for i := range 2000 {
		if name := strconv.Itoa(i); x.get(name) != want[name] {
			t.Errorf("seed %d: index and map differ at %s", seed, name)
		}
	}
}

// TestIndexMovesUp deletes every value of a full run of slots in turn.
func TestIndexMovesUp(t *testing.T) {
	t.Parallel()
	const size = 10 // of 16 slots, so that runs form and wrap around
	for round := range 200 {
		for gone := range size {
			x := newIndex[*group](0)
			for i := range size {
				x.put(&group{key: strconv.Itoa(round*size + i)})
			}
			x.delete(strconv.Itoa(round*size + gone))
			for i := range size {
				g := x.get(strconv.Itoa(round*size + i))
				if (g == nil) != (i == gone) {
					t.Fatalf("without %d, %d is %v", gone, i, g)
				}
			}
		}
	}
}
