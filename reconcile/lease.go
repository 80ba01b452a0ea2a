package reconcile

import (
	"context"
	"errors"
	"time"

	"github.com/tallystick/tallystick/store"
)

// ErrHandedOver reports that another worker asked for the shard, because it has fewer than its
// share. The epoch in flight was finished first.
var ErrHandedOver = errors.New("the shard is handed over to another worker that asked for it")

// beatsPerLease is how often in a lease it is extended, so that one beat lost does no harm.
const beatsPerLease = 3

// tenure is the time in which an attempt holds its shard.
type tenure struct {
	// giveUp ends the attempt's context; cause is why it has ended, nil while it has not.
	giveUp context.CancelCauseFunc
	cause  func() error
	stop   context.CancelFunc
	done   chan struct{}
}

// hold extends the lease from now on, also while the attempt reads its state or finishes an epoch.
// The context that it returns ends with the given one, or when the shard is to be given up.
func (w *worker) hold(ctx context.Context) (context.Context, *tenure) {
	running, giveUp := context.WithCancelCause(ctx)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &tenure{
		giveUp: giveUp, cause: func() error { return context.Cause(running) },
		stop: stop, done: make(chan struct{}),
	}
	go func() {
		defer close(t.done)
		if w.LeaseFor > 0 {
			w.beat(beating, t, w.LeaseFor/beatsPerLease)
		}
	}()
	return running, t
}

// beat extends the lease every so often. What it finds out ends the run, but not the beat: the
// epoch in flight is still to be committed.
func (w *worker) beat(ctx context.Context, t *tenure, every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		asking, cancel := context.WithTimeout(ctx, every)
		by, err := w.shard.Extend(asking)
		cancel()
		switch {
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrWentBack):
			t.giveUp(err)
		case err != nil && ctx.Err() == nil:
			w.Logger.Warn("the lease could not be extended", "error", err)
		case by != "" && t.cause() == nil:
			w.Logger.Info("handing the shard over", "to", by)
			t.giveUp(ErrHandedOver)
		}
	}
}

// end stops the beat and gives what the attempt ends with: why the shard was given up, where the
// run ended for no other reason.
func (t *tenure) end(err error) error {
	t.stop()
	<-t.done
	cause := t.cause()
	given := errors.Is(cause, ErrHandedOver) || errors.Is(cause, store.ErrFenced) ||
		errors.Is(cause, store.ErrWentBack)
	t.giveUp(nil)
	if given && (err == nil || errors.Is(err, context.Canceled)) {
		return cause
	}
	return err
}
