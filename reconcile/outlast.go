package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// How long a source that is away is waited for, and how often it is looked for.
const (
	outlastFor   = 5 * time.Minute
	outlastFirst = 50 * time.Millisecond
	outlastMax   = 5 * time.Second
)

// outlasting is a source that outlasts the loss of its server: it is opened again where it stood, as
// often as it takes within outlastFor. Other errors pass through.
type outlasting struct {
	Source
	logger *slog.Logger
	// position and identity are those of the last record given.
	position, identity string
	// broken is true until the source has been opened again.
	broken bool
}

// Open starts the source, and notes where.
func (s *outlasting) Open(ctx context.Context, position, identity string) (string, error) {
	var found string
	err := s.outlast(ctx, func() (err error) {
		found, err = s.Source.Open(ctx, position, identity)
		return err
	})
	s.position, s.identity, s.broken = position, found, false
	return found, err
}

// Bound fixes the end.
func (s *outlasting) Bound(ctx context.Context) error {
	return s.outlast(ctx, func() error { return s.Source.Bound(ctx) })
}

// Read gives what follows the last record given, however often the source broke since.
func (s *outlasting) Read(
	ctx context.Context, limit int,
) (records []stream.Record, atEnd bool, err error) {
	err = s.outlast(ctx, func() (err error) {
		if s.broken {
			if _, err := s.Source.Open(ctx, s.position, s.identity); err != nil {
				return err
			}
			s.broken = false
		}
		records, atEnd, err = s.Source.Read(ctx, limit)
		s.broken = err != nil
		return err
	})
	if err == nil {
		if n := len(records); n > 0 {
			s.position = records[n-1].Position
		}
		s.identity = s.Source.Identity()
	}
	return records, atEnd, err
}

// outlast runs do until it succeeds or fails for another reason than that the server is away.
func (s *outlasting) outlast(ctx context.Context, do func() error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = outlastFirst
	pauses.MaxInterval = outlastMax
	var last error
	attempt := 0
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = do()
		if last != nil && store.Classify(last) != store.Retry {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(outlastFor),
		backoff.WithNotify(func(err error, _ time.Duration) {
			attempt++
			s.logger.Warn("the source is away, trying again", "source", s.Partition().String(),
				"attempt", attempt, "error", err)
		}))
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(last, cause) {
		return errors.Join(cause, last)
	}
	return last
}
