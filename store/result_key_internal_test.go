package store

import (
	"math"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestBucket: a quarter of an hour each, in the order of time, before 1970 and where an int32 ends.
func TestBucket(t *testing.T) {
	t.Parallel()
	const quarter = 900_000_000
	for _, c := range []struct {
		horizon stream.Micros
		want    int32
	}{
		{stream.NegInfinity, math.MinInt32},
		{-1 << 31 * quarter, math.MinInt32},
		{-quarter - 1, -2},
		{-quarter, -1},
		{-1, -1},
		{0, 0},
		{quarter - 1, 0},
		{quarter, 1},
		{1_767_225_600_000_000, 1_963_584}, // 2026-01-01 00:00 UTC
		{math.MaxInt32 * quarter, math.MaxInt32},
		{stream.Infinity, math.MaxInt32},
	} {
		if got := bucketOf(&stream.Result{Horizon: c.horizon}); got != c.want {
			t.Errorf("bucket of %d is %d, want %d", c.horizon, got, c.want)
		}
	}
}

// TestKeyPrefix: sorting by it is sorting by the key.
func TestKeyPrefix(t *testing.T) {
	t.Parallel()
	var prefixes []uint64
	for _, bucket := range []stream.Micros{math.MinInt32, -1, 0, 1, math.MaxInt32} {
		for _, first := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			r := stream.Result{Horizon: bucket * bucketMicros, MatchID: stream.MatchID{first}}
			prefixes = append(prefixes, keyPrefix(&r))
		}
	}
	if !slices.IsSorted(prefixes) {
		t.Errorf("not in the order of the keys: %x", prefixes)
	}
}
