package reconcile

import (
	"context"

	"github.com/tallystick/tallystick/store"
)

// Leases shares the shards of a generation among workers, of which this is one.
type Leases interface {
	// List gives all leases, in the order of shards.
	List(ctx context.Context) ([]store.Lease, error)
	// Take takes a shard for a new attempt and gives the state it was left in. It returns
	// store.ErrHeld while another worker has the lease.
	Take(ctx context.Context, shard int32) (Shard, store.State, error)
	// Ask asks the holder to hand a shard over.
	Ask(ctx context.Context, shard int32, holder string) error
}

// StoreLeases gives the leases of a generation as a store keeps them.
func StoreLeases(s *store.Store, generation int32, worker string) Leases {
	return &storeLeases{s, generation, worker}
}

type storeLeases struct {
	store      *store.Store
	generation int32
	worker     string
}

func (l *storeLeases) List(ctx context.Context) ([]store.Lease, error) {
	return l.store.Leases(ctx, l.generation)
}

func (l *storeLeases) Take(ctx context.Context, shard int32) (Shard, store.State, error) {
	h, err := l.store.Take(ctx, l.generation, shard, l.worker)
	if err != nil {
		return nil, store.State{}, err
	}
	return h, h.State, nil
}

func (l *storeLeases) Ask(ctx context.Context, shard int32, holder string) error {
	return l.store.Request(ctx, l.generation, shard, l.worker, holder)
}
