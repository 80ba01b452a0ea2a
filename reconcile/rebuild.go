package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
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
		if s.Partition() != p {
			continue
		}
		order, err := s.Compare(ctx, a, b)
		if err != nil {
			err = fmt.Errorf("compare positions of source %s: %w", p, err)
		}
		return order, err
	}
	return 0, fmt.Errorf("compare positions of source %s: the configuration has no such source", p)
}

// Settles tells whether a candidate of a rule has read in time what a correction of its base says came
// too late: it stands before where the base stood, and in an interval in whole.
func Settles(
	ctx context.Context, sources []Source, rule join.Rule, g *store.Generation,
	c *store.OpenCorrection,
) (bool, error) {
	at := g.CatchUp.Of(c.Partition)
	if at == nil {
		return false, nil
	}
	order, err := ComparePositions(ctx, sources, c.Partition, c.Position, at.To)
	if err != nil || order > 0 {
		return false, err
	}
	return g.Kind == store.Full || inside(g.Interval, Changed(rule, c)), nil
}

// Changed gives the event times of the events that a correction is about: it, what it revises, and
// what has been taken of the same id since. Either end is infinite where that is not known.
func Changed(rule join.Rule, c *store.OpenCorrection) stream.Range {
	reach := max(rule.Before, rule.After)
	r := stream.Range{From: c.Affected.From.Add(reach), To: c.Affected.To.Add(-reach)}
	if c.Held {
		r.From, r.To = min(r.From, c.HeldTimes.From), max(r.To, c.HeldTimes.To)
	}
	if r.To.Finite() {
		r.To++ // the end is not part of it
	}
	return r
}

// Closing is how far the low watermark must have passed the end of an interval for live work to be past
// all results that a rebuild of it can touch.
func Closing(rule join.Rule) time.Duration {
	// It merges pairs with a member within reach of the interval. The other member is within reach of
	// that, and what it waits for within reach again.
	return 3*max(rule.Before, rule.After) + rule.Lateness
}

// ClosedCorrections gives the interval of the open corrections whose results live work can no longer
// change, empty for none, and how many others there are.
func ClosedCorrections(
	rule join.Rule, list []store.OpenCorrection, watermark stream.Micros,
) (within stream.Range, others int) {
	for i := range list {
		changed := Changed(rule, &list[i])
		switch {
		case !changed.From.Finite(), !changed.To.Finite(), changed.To.Add(Closing(rule)) > watermark:
			others++
		case within == stream.Range{}:
			within = changed
		default:
			within.From = min(within.From, changed.From)
			within.To = max(within.To, changed.To)
		}
	}
	return within, others
}
