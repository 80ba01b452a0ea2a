package reconcile

import (
	"context"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// LeftOpen gives, of the corrections of a base, those that a rebuild of an interval does not settle.
// A record that several shards have set aside is settled in all of them or in none.
func LeftOpen(
	rule join.Rule, within stream.Range, list []store.OpenCorrection,
) (open []store.OpenCorrection) {
	left := map[recordAt]bool{}
	for i := range list {
		if !inside(within, Changed(rule, &list[i])) {
			left[recordOf(&list[i])] = true
		}
	}
	for i := range list {
		if left[recordOf(&list[i])] {
			open = append(open, list[i])
		}
	}
	return open
}

func inside(within, changed stream.Range) bool {
	return changed.From >= within.From && changed.To <= within.To
}

// recordAt names a record of a source.
type recordAt struct {
	stream.Partition
	position string
}

func recordOf(c *store.OpenCorrection) recordAt { return recordAt{c.Partition, c.Position} }

// without is a source without some of its records.
type without struct {
	Source
	records map[recordAt]struct{}
}

// leaveOut takes the records that a shard has set aside out of its sources.
func leaveOut(sources []Source, list []store.OpenCorrection, shard int32) []Source {
	records := map[recordAt]struct{}{}
	for i := range list {
		if list[i].Shard == shard {
			records[recordOf(&list[i])] = struct{}{}
		}
	}
	if len(records) == 0 {
		return sources
	}
	rest := make([]Source, len(sources))
	for i, source := range sources {
		rest[i] = &without{source, records}
	}
	return rest
}

// Read gives what the source gives, without them.
func (s *without) Read(
	ctx context.Context, limit int,
) (records []stream.Record, atEnd bool, err error) {
	for {
		read, atEnd, err := s.Source.Read(ctx, limit)
		if err != nil {
			return nil, false, err
		}
		for i := range read {
			if _, out := s.records[recordAt{s.Partition(), read[i].Position}]; !out {
				records = append(records, read[i])
			}
		}
		if len(records) > 0 || len(read) == 0 || atEnd {
			return records, atEnd, nil
		}
	}
}
