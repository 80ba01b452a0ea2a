package stream

import "github.com/cespare/xxhash/v2"

// ShardOf gives the shard, of so many, that owns a join key: xxHash64 (seed 0) of the key's bytes,
// as an unsigned number, modulo shards. It is part of the stored format: every row lies in the shard
// that this says, so it can never change for a generation. With one shard, or none, it is 0.
func ShardOf(key string, shards int32) int32 {
	if shards <= 1 {
		return 0
	}
	return int32(xxhash.Sum64String(key) % uint64(shards))
}
