package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// background reads, beside the first epochs of an attempt, what they can do without: which ids and keys
// are stored, so that others need not be looked up when they come, and then what a start leaves
// unread, to find damage before it is used.
type background struct {
	// seen gives the ids once they have been read; nil for an attempt that has nothing to read.
	seen   chan *join.Seen
	begin  func()
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// backgroundWait is how long the reading waits for the first commit, which somebody may wait for.
const backgroundWait = time.Second

// readOn starts the background of an attempt that goes on from an epoch.
func (w *worker) readOn(ctx context.Context, epoch int64) *background {
	ctx, cancel := context.WithCancel(ctx)
	begun := make(chan struct{})
	b := &background{
		begin: sync.OnceFunc(func() { close(begun) }), cancel: cancel, done: make(chan struct{}),
	}
	if epoch == 0 {
		close(b.done)
		return b
	}
	b.seen = make(chan *join.Seen, 1)
	go func() {
		defer close(b.done)
		select {
		case <-begun:
		case <-time.After(backgroundWait):
		case <-ctx.Done():
			return
		}
		w.learnSeen(ctx, b.seen)
		err := w.shard.CheckRest(ctx)
		switch {
		case errors.Is(err, store.ErrDamaged):
			b.err = err
			w.failed()
		case err != nil && ctx.Err() == nil:
			w.Logger.Warn("what is stored could not be checked whole, tally verify does it", "error", err)
		}
	}()
	return b
}

// wait waits until all is read, and tells whether something is damaged.
func (b *background) wait() error {
	<-b.done
	return b.err
}

// end ends the reading and tells whether something is damaged.
func (b *background) end() error {
	b.cancel()
	return b.wait()
}

func (w *worker) learnSeen(ctx context.Context, ids chan<- *join.Seen) {
	seen := join.NewSeen()
	err := w.shard.ResultIDs(ctx, seen.Add)
	if err == nil && w.spilled {
		err = w.shard.BufferNames(ctx, func(side stream.Side, id, key string) {
			seen.Add(side, id)
			seen.AddKey(key)
		})
	}
	if err != nil {
		if ctx.Err() == nil {
			w.Logger.Warn("what is stored is not known by name, each new id is looked up", "error", err)
		}
		return
	}
	ids <- seen
}
