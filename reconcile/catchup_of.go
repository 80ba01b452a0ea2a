package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// CatchUpOf gives where a generation stands, out of the states of all its shards: of each partition
// the highest position, with what that shard knows of it there, and the lowest of the low
// watermarks. A shard that has read nothing must be among them.
//
// The sources are not open. One whose partition stands at different positions in different shards is
// opened at one of them, to compare them, and closed again; errors are those of its Open and Compare.
// Without such a source they cannot be compared, which is an error; released records need none.
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
) (highest stream.Progress, err error) {
	highest = list[0]
	compare, done := comparer(ctx, sources, &list[0])
	defer func() { err = errors.Join(err, done()) }()
	for _, p := range list[1:] {
		if p.To == highest.To {
			continue
		}
		order, err := compare(p.To, highest.To)
		if err != nil {
			return highest, fmt.Errorf("compare positions of source %s: %w", p.Partition, err)
		}
		if order > 0 {
			highest = p
		}
	}
	return highest, nil
}

// comparer gives a comparison of a partition's positions, for which its source is opened when it is
// first used, and what closes that.
func comparer(
	ctx context.Context, sources []Source, at *stream.Progress,
) (compare func(a, b string) (int, error), done func() error) {
	done = func() error { return nil }
	if at.Source == QuarantineSource {
		return func(a, b string) (int, error) {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)), nil
		}, done
	}
	i := slices.IndexFunc(sources, func(s Source) bool { return s.Partition() == at.Partition })
	if i < 0 {
		return func(_, _ string) (int, error) {
			return 0, errors.New("there is no such source any more that could tell their order")
		}, done
	}
	source, open := sources[i], false
	compare = func(a, b string) (int, error) {
		if a == "" || b == "" {
			return cmp.Compare(min(len(a), 1), min(len(b), 1)), nil
		}
		if !open {
			open = true
			if _, err := source.Open(ctx, at.To, at.Identity); err != nil {
				return 0, fmt.Errorf("open it: %w", err)
			}
		}
		return source.Compare(ctx, a, b)
	}
	return compare, func() error {
		if !open {
			return nil
		}
		return source.Close()
	}
}
