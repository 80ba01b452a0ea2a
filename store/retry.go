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

// retry runs do until it succeeds, fails for good or the time for retries is over, which begins with
// the first failure, with growing pauses and jitter between. It returns the last error of do.
func (s *Store) retry(ctx context.Context, do func() error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = backoffFirst
	pauses.MaxInterval = backoffMax
	attempt := 0
	var over func(Class) bool
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = do()
		switch {
		case last == nil:
			return struct{}{}, nil
		case over == nil:
			over = s.deadlines()
		}
		if over(Classify(last)) {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			attempt++
			s.troubles.count(err)
			s.tell(err, attempt)
		}))
	if err == nil {
		if attempt > 0 {
			s.tell(nil, attempt)
		}
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(last, cause) {
		return errors.Join(cause, last)
	}
	return last
}

// deadlines tells from now on whether the time is over for an operation that fails with errors of a
// class.
func (s *Store) deadlines() func(Class) bool {
	retry, diskFull := time.After(s.retryFor), time.After(s.diskFullFor)
	return func(class Class) bool {
		over := retry
		switch class {
		case Retry:
		case DiskFull:
			over = diskFull
		default:
			return true
		}
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
}

func (s *Store) tell(err error, attempt int) {
	if s.onRetry != nil {
		s.onRetry(err, attempt)
	}
}
