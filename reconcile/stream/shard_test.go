package stream_test

import (
	"fmt"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestShardOfIsFixed: rows are stored where these say, so they may never change. The hash of the
// empty text is the one published with xxHash64, 0xef46db3751d8e999.
func TestShardOfIsFixed(t *testing.T) {
	t.Parallel()
	const empty = uint64(0xef46db3751d8e999)
	for _, shards := range []int32{2, 3, 8, 1000} {
		if got, want := stream.ShardOf("", shards), int32(empty%uint64(shards)); got != want {
			t.Errorf("the empty key is in shard %d of %d, want %d", got, shards, want)
		}
	}
	for key, want := range map[string]int32{
		"a": 955, "k1": 651, "k2": 182, "order-1": 701, "5:order3:eur": 158, "Ω": 48,
	} {
		if got := stream.ShardOf(key, 1000); got != want {
			t.Errorf("key %q is in shard %d of 1000, want %d", key, got, want)
		}
	}
}

// TestShardOfSpreads: no shard gets much more than its share, and one shard gets everything.
func TestShardOfSpreads(t *testing.T) {
	t.Parallel()
	const keys, shards = 80000, 8
	var owned [shards]int
	for i := range keys {
		key := fmt.Sprint("order-", i)
		owned[stream.ShardOf(key, shards)]++
		if stream.ShardOf(key, 1) != 0 || stream.ShardOf(key, 0) != 0 {
			t.Fatalf("with one shard key %q is not in shard 0", key)
		}
	}
	for shard, n := range owned {
		if n < keys/shards*9/10 || n > keys/shards*11/10 {
			t.Errorf("shard %d owns %d of %d keys", shard, n, keys)
		}
	}
}
