package oracle

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// Seeds yields the seeds of a random test: as many as TALLY_SEEDS says, usual where it is not set,
// from 1 on; TALLY_SEED=n yields that one alone, to replay a failure. A test that takes long divides
// the number by share.
func Seeds(t testing.TB, usual, share uint64) iter.Seq[uint64] {
	t.Helper()
	first, count := uint64(1), max(number(t, "TALLY_SEEDS", usual)/share, 1)
	if one := number(t, "TALLY_SEED", 0); one > 0 {
		first, count = one, 1
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed < first+count && yield(seed); seed++ {
		}
	}
}

func number(t testing.TB, name string, unset uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: want a number of histories or a seed: %v", name, err)
	}
	return n
}
