package reconcile

import (
	"context"
	"fmt"
	"strings"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// sideBetween is what the narrowed sources of one side know together: the ids that have a record in
// the range in any of them.
type sideBetween struct {
	stream.Range
	members []*between
	// turn is held by the one who looks for the ids; known is true when they were found.
	turn  chan struct{}
	known bool
}

func newSideBetween(r stream.Range) *sideBetween {
	return &sideBetween{Range: r, turn: make(chan struct{}, 1)}
}

// find learns the ids of all members, once.
func (s *sideBetween) find(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.known {
		return nil
	}
	var readers []*between
	for _, b := range s.members {
		if b.end != "" {
			readers = append(readers, b)
		}
	}
	for _, b := range readers {
		if err := b.find(ctx, len(readers) == 1); err != nil {
			return fmt.Errorf("find the ids of %s: %w", b.reading.Partition, err)
		}
	}
	for _, b := range readers {
		if b.selects {
			b.others = s.idsBeside(b)
		}
	}
	s.known = true
	return nil
}

// idsBeside lists the ids that other members have in the range and this one has not.
func (s *sideBetween) idsBeside(b *between) (others []string) {
	for _, other := range s.members {
		if other == b {
			continue
		}
		for id := range other.ids {
			if _, own := b.ids[id]; !own {
				others = append(others, id)
			}
		}
	}
	return others
}

// has tells whether an id has a record in the range.
func (s *sideBetween) has(id string) bool {
	for _, b := range s.members {
		if _, found := b.ids[id]; found {
			return true
		}
	}
	return false
}

// note adds the id of a record in the range. The id shares its memory with the rest of the record,
// which is not kept.
func (s *sideBetween) note(ids map[string]struct{}, r *stream.Record) {
	e := &r.Event
	if r.Reason != "" || !e.HasTime || e.Time < s.From || e.Time >= s.To {
		return
	}
	if _, known := ids[e.ID]; !known {
		ids[strings.Clone(e.ID)] = struct{}{}
	}
}
