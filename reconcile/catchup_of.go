package reconcile

import (
	"context"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// CatchUpOf gives where a generation stands, out of the states of all its shards: of each partition
// the highest position, with what that shard knows of it there, and the lowest of the low
// watermarks. A shard that has read nothing must be among them.
//
// The sources are open; errors are those of ComparePositions.
func CatchUpOf(
	ctx context.Context, sources []Source, shards []store.State,
) (stream.CatchUp, error) {
	c := stream.CatchUp{Watermark: stream.Infinity}
	all := map[stream.Partition][]stream.Progress{}
	for i := range shards {
		c.Watermark = min(c.Watermark, shards[i].Watermark)
		for _, p := range shards[i].Progress {
			p.From = p.To
			all[p.Partition] = append(all[p.Partition], p)
		}
	}
	if len(shards) == 0 {
		c.Watermark = stream.NegInfinity
	}
	for _, list := range all {
		highest, err := furthest(ctx, sources, list)
		if err != nil {
			return stream.CatchUp{}, err
		}
		c.Partitions = append(c.Partitions, highest)
	}
	slices.SortFunc(c.Partitions, func(a, b stream.Progress) int {
		return a.Partition.Compare(b.Partition)
	})
	return c, nil
}

// furthest gives what is known of a partition in the shard that has read the most of it.
func furthest(
	ctx context.Context, sources []Source, list []stream.Progress,
) (stream.Progress, error) {
	highest := list[0]
	for _, p := range list[1:] {
		order, err := ComparePositions(ctx, sources, p.Partition, p.To, highest.To)
		if err != nil {
			return highest, err
		}
		if order > 0 {
			highest = p
		}
	}
	return highest, nil
}
