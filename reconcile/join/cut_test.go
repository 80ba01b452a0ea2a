package join_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestCut lets events meet others of the batch, rows in memory and rows found, of a key each. All
// but those of the key "far" are within the window.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name              string
		held, left, right []string // the keys of the events
		found             []string
		pairs             int
	}{
		{"in the batch", nil, []string{"a", "a"}, []string{"a", "a", "b"}, nil, 4},
		{"with rows in memory", []string{"a", "a", "b"}, nil, []string{"a", "a"}, nil, 4},
		{"with rows found", nil, nil, []string{"a", "a"}, []string{"a", "a", "b"}, 4},
		{"with all", []string{"a"}, []string{"a"}, []string{"a", "a"}, []string{"a"}, 6},
		{"windows apart", []string{"far", "a"}, []string{"far"}, []string{"far", "a"}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for most := max(1, c.pairs-1); most <= c.pairs; most++ {
				s := join.New(join.Config{
					Rule:     join.Rule{Version: "v1", Kind: join.Full, After: time.Minute},
					MaxAhead: time.Hour, MaxSkew: time.Hour, MaxPairsPerKey: 100,
					CacheRows: 100, ClosingsMax: 100, PairsMax: most,
				}, join.Start{Watermark: stream.NegInfinity})
				s.Step(crowdOf(c.held, nil), &stream.Found{})
				b := crowdOf(c.left, c.right)
				records := b.Records()
				rest := s.Cut(b, &stream.Found{Rows: rowsOf(c.found)})
				if cut := c.pairs > most; (rest != nil) != cut {
					t.Fatalf("%d pairs, at most %d: rest %v, want one: %t", c.pairs, most, rest, cut)
				}
				if rest != nil && b.Records()+rest.Records() != records {
					t.Errorf("%d records became %d and %d", records, b.Records(), rest.Records())
				}
			}
		})
	}
}

// crowdOf has an event for each key of each side. Of the key far the left ones are an hour late.
func crowdOf(left, right []string) *stream.Batch {
	b := &stream.Batch{}
	for side, keys := range [][]string{left, right} {
		part := stream.Part{Partition: stream.Partition{Side: stream.Side(side), Source: "s"}}
		for i, key := range keys {
			at := stream.Micros(0)
			if key == "far" && stream.Side(side) == stream.Left {
				at = stream.Micros(time.Hour.Microseconds())
			}
			part.Records = append(part.Records, stream.Record{Position: fmt.Sprint(i), Event: stream.Event{
				ID: fmt.Sprint(len(left), side, i), Revision: 1, Key: key, HasTime: true, Time: at,
			}})
		}
		b.Parts = append(b.Parts, part)
	}
	return b
}

func rowsOf(keys []string) []stream.BufferRow {
	var rows []stream.BufferRow
	for i, key := range keys {
		rows = append(rows, stream.BufferRow{Side: stream.Left, Event: stream.Event{
			ID: fmt.Sprint("found", i), Revision: 1, Key: key, HasTime: true,
		}})
	}
	return rows
}
