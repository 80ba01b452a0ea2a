package join

import (
	"github.com/tallystick/tallystick/reconcile/stream"
)

// firstRevision is the revision up to which a foreign event of an unknown id is taken for the first
// of its id. A higher one may be a move that overtook the event it moves, so it is remembered.
const firstRevision = 1

// owns tells whether the join key is this shard's. No key at all is every shard's.
func (c *Config) owns(key string) bool {
	return key == "" || stream.ShardOf(key, c.Shards) == c.Shard
}

// speaks tells whether this shard is the one that counts the record and sets it aside: the owner of
// its key; without one, the owner of the key that it meets in a revision held; and where there is
// none either, the shard that a hash of the record's position names.
func (s *State) speaks(c *winner, met string) bool {
	key := c.record.Event.Key
	if key == "" {
		key = met
	}
	if key == "" && s.cfg.Shards > 1 {
		key = c.part.String() + "@" + c.record.Position
	}
	return s.cfg.owns(key)
}

// tally counts the record under n, or as out of shard where other shards speak for it.
func (s *State) tally(c *winner, n *int64) {
	if !c.mine {
		n = &s.work.delta.Counts.OutOfShard
	}
	*n++
}
