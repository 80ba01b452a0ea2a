package reconcile

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// Reached tells whether every shard of a candidate has read each partition as far as any shard of its
// base has; if not, it gives a partition that lags behind. The sources are open.
func Reached(
	ctx context.Context, sources []Source, base, candidate []store.State,
) (lags *stream.Partition, err error) {
	for i := range base {
		for _, p := range base[i].Progress {
			for j := range candidate {
				order, err := ComparePositions(ctx, sources, p.Partition, positionOf(&candidate[j], p.Partition),
					p.To)
				if err != nil {
					return nil, err
				}
				if order < 0 {
					return &p.Partition, nil
				}
			}
		}
	}
	return nil, nil
}

func positionOf(state *store.State, partition stream.Partition) string {
	for i := range state.Progress {
		if state.Progress[i].Partition == partition {
			return state.Progress[i].To
		}
	}
	return ""
}

// ComparePositions orders two positions of a partition; empty is before all. The sources are open.
func ComparePositions(
	ctx context.Context, sources []Source, p stream.Partition, a, b string,
) (int, error) {
	switch {
	case a == b:
		return 0, nil
	case a == "":
		return -1, nil
	case b == "":
		return 1, nil
	case p.Source == QuarantineSource:
		x, errX := strconv.ParseInt(a, 10, 64)
		y, errY := strconv.ParseInt(b, 10, 64)
		if errX != nil || errY != nil {
			return 0, fmt.Errorf("compare positions %q and %q of source %s: they are no numbers", a, b, p)
		}
		if x < y {
			return -1, nil
		}
		return 1, nil
	}
	for _, s := range sources {
		if s.Partition() == p {
			return s.Compare(ctx, a, b)
		}
	}
	return 0, fmt.Errorf("compare positions of source %s: the configuration has no such source", p)
}
