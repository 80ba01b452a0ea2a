package store

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	backoffFirst = 50 * time.Millisecond
	backoffMax   = 5 * time.Second
)

// retry runs do until it succeeds, fails for good or the time for retries is over, with growing
// pauses and jitter between. It returns the last error of do.
func (s *Store) retry(ctx context.Context, do func() error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = backoffFirst
	pauses.MaxInterval = backoffMax
	attempt := 0
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = do()
		if class := Classify(last); last != nil && class != Retry && class != DiskFull {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(s.retryFor),
		backoff.WithNotify(func(err error, _ time.Duration) {
			attempt++
			if s.onRetry != nil {
				s.onRetry(err, attempt)
			}
		}))
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(last, cause) {
		return errors.Join(cause, last)
	}
	return last
}
