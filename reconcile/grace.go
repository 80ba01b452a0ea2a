package reconcile

import (
	"context"
	"time"
)

// commitGrace is how long the epoch in flight may still take after the run was told to stop: long
// enough for a slow commit, and not for a server that is away or has no room. What is cut off then
// is found out by whoever takes the shard next.
const commitGrace = 10 * time.Second

// outliving gives a context that ends some time after ctx does. Its cancel function must be called.
func outliving(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() {
		unwatch()
		cancel(nil)
	}
}
