package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// bucketMicros is the length of a bucket of results: a quarter of an hour.
const bucketMicros = 15 * 60 * 1e6

// bucketOf gives the bucket of a result: the quarter of an hour, counted from 1970 UTC, that its
// horizon is in, as far as an int32 goes. The horizon follows from the identity, and so does this.
//
// It comes before the identity in the primary key. Identities are hashes, so that each new result
// would meet another page of an index on them alone: as many pages read and written as there are
// results, once the index has outgrown the cache. The results of one epoch share few buckets.
func bucketOf(r *stream.Result) int32 {
	n := int64(r.Horizon) / bucketMicros
	if int64(r.Horizon)%bucketMicros < 0 {
		n--
	}
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

// resultKey is the primary key of a result within a shard.
type resultKey struct {
	bucket int32
	id     stream.MatchID
}

// keyPrefix gives the first bytes of a result's primary key within the shard, in its order.
func keyPrefix(r *stream.Result) uint64 {
	bucket := uint32(bucketOf(r)) ^ 1<<31 // the lowest first
	return uint64(bucket)<<32 | uint64(binary.BigEndian.Uint32(r.MatchID[:]))
}

// keyOf gives the key of a result's row.
func keyOf(r *stream.Result) resultKey { return resultKey{bucketOf(r), r.MatchID} }

// firstKey is before the key of every result.
var firstKey = resultKey{bucket: math.MinInt32}

// readResultKey takes the columns bucket, match_id.
func readResultKey(v [][]byte) resultKey {
	k := resultKey{bucket: readInt4(v[0])}
	copy(k.id[:], v[1]) // it may be damaged, and shorter
	return k
}

func (k resultKey) compare(o resultKey) int {
	return cmp.Or(cmp.Compare(k.bucket, o.bucket), bytes.Compare(k.id[:], o.id[:]))
}

func addKey(a *args, k resultKey) {
	a.int4(k.bucket)
	a.bytea(k.id[:])
}

// addKeys adds result keys as an array of their buckets and one of their identities.
func addKeys(a *args, keys []resultKey) {
	array(a, int4Array, keys, func(b []byte, k *resultKey) []byte { return appendInt4(b, k.bucket) })
	array(a, byteaArray, keys, func(b []byte, k *resultKey) []byte { return appendBytes(b, k.id[:]) })
}
