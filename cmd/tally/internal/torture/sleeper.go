package torture

import (
	"context"
	"fmt"
	"time"
)

// sleeper is a worker that was stopped: another takes its shard, and then it wakes.
type sleeper struct {
	worker   *worker
	fault    Fault
	since    time.Time
	tookOver bool
	// found is the epoch that the other one went on from.
	found int64
	awake chan error
}

// wake lets the sleepers go on whose shard another worker has taken, once they slept long enough.
func (t *trial) wake() error {
	for _, s := range t.asleep {
		if s.tookOver && s.awake == nil {
			s.awake = make(chan error, 1)
			go func() {
				time.Sleep(time.Until(s.since.Add(leasesStopped * t.Lease)))
				s.awake <- resume(s.worker.cmd.Process)
			}()
		}
	}
	return nil
}

// awaken waits for all sleepers to find that they lost their shard.
func (t *trial) awaken(ctx context.Context) error {
	for len(t.asleep) > 0 {
		s := t.asleep[0]
		select {
		case err := <-s.awake:
			if err != nil {
				return fmt.Errorf("resume a stopped worker: %w", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := t.hearOut(s); err != nil {
			return err
		}
		t.asleep = t.asleep[1:]
	}
	return nil
}

// hearOut waits for a sleeper's end. It must not commit what it held, and say that it was fenced
// off; only one that had nothing left to commit may not notice.
func (t *trial) hearOut(s *sleeper) error {
	for n := range s.worker.notices {
		// What it had sent before it was stopped may have been committed until the other one came.
		if n.Committed > s.fault.Epoch && n.Committed > s.found {
			s.worker.end()
			return fmt.Errorf("a worker stopped at %s of epoch %d and was superseded; it woke and "+
				"committed epoch %d", s.fault.Step, s.fault.Epoch, n.Committed)
		}
	}
	code, err := s.worker.wait()
	switch {
	case err != nil:
		return err
	case code == exitFenced:
		t.result.Reached[fencedLate]++
		return nil
	case code == exitDone && s.fault.Epoch >= t.committed:
		return nil
	}
	return fmt.Errorf("a worker stopped at %s of epoch %d woke after another took over, and ended "+
		"with exit code %d; want %d: fenced off. %s", s.fault.Step, s.fault.Epoch, code, exitFenced,
		s.worker.says())
}
