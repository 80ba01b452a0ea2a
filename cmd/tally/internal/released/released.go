// Package released is the source that feeds records released from the quarantine back: one
// partition a side, in the order of their release. The position is the number of the release.
package released

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// poll is how often to look for new releases: they are made by hand.
const poll = time.Second

// List gives up to limit records of a side that were released after a number.
type List func(ctx context.Context, side stream.Side, after int64, limit int) (
	[]store.ReleasedRow, error)

// Source reads one side's released records. It serves one goroutine at a time.
type Source struct {
	side   stream.Side
	list   List
	mapper *record.Mapper
	after  int64
}

// New makes the source of a side. A released record is read as JSON, by the side's mapping.
func New(side stream.Side, mapping record.Mapping, list List) (*Source, error) {
	mapper, err := record.New(mapping)
	if err != nil {
		return nil, fmt.Errorf("released records of the %s side: %w", side, err)
	}
	return &Source{side: side, list: list, mapper: mapper}, nil
}

// Partition is number 0 of the source that the join knows to say nothing about time.
func (s *Source) Partition() stream.Partition {
	return stream.Partition{Side: s.side, Source: join.QuarantineSource}
}

// PollInterval tells how long to wait after the present end before the next Read.
func (s *Source) PollInterval() time.Duration { return poll }

// Open starts after a position, empty being the beginning. The quarantine is in the same database
// as the position, so there is no other that it could be mistaken for.
func (s *Source) Open(_ context.Context, position, _ string) (string, error) {
	after, err := parsePosition(position)
	s.after = after
	return "", err
}

// Compare orders two positions.
func (s *Source) Compare(_ context.Context, a, b string) (int, error) {
	first, err1 := parsePosition(a)
	second, err2 := parsePosition(b)
	return cmp.Compare(first, second), errors.Join(err1, err2)
}

// Read gives up to maxRecords records released by now.
func (s *Source) Read(
	ctx context.Context, maxRecords int,
) (records []stream.Record, atEnd bool, err error) {
	rows, err := s.list(ctx, s.side, s.after, maxRecords)
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		r := s.mapper.JSON(row.Raw)
		s.after = row.Seq
		r.Position = strconv.FormatInt(row.Seq, 10)
		records = append(records, r)
	}
	return records, len(rows) < maxRecords, nil
}

// Bound does nothing: a Read that finds no more is the end.
func (s *Source) Bound(context.Context) error { return nil }

// Seal does nothing: no release is half done.
func (s *Source) Seal() {}

// Identity is empty: see Open.
func (s *Source) Identity() string { return "" }

// Close has nothing to close.
func (s *Source) Close() error { return nil }

func parsePosition(position string) (int64, error) {
	if position == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(position, 10, 64)
	if err != nil || number < 0 {
		return 0, fmt.Errorf("%w: position %q is no number of a release", stream.ErrPositionLost,
			position)
	}
	return number, nil
}
