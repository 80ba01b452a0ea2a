package reconcile

import (
	"context"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/store"
)

// Upkeep is what a worker does for a shard beside the loop: it purges what no retained epoch needs,
// and archives snapshots. One thing at a time, since a snapshot reads what a purge would delete.
type Upkeep struct {
	Store      *store.Store
	Generation int32
	// Shards is how many the generation has; they share the buffer's table.
	Shards int32
	Retain store.Retention
	// Archive is nil where none is configured.
	Archive *Archives
	// Every is the time between two snapshots of a shard.
	Every  time.Duration
	Logger *slog.Logger
}

const (
	// purgeEvery is how often to see whether a purge pays; it does when a share of at least 1 in
	// purgeShare of the buffer can go, or when some can and none did for purgeAtLeast.
	purgeEvery   = 5 * time.Second
	purgeShare   = 10
	purgeAtLeast = time.Hour
	// restShare is how many times as long as a step took to rest after it: the purge has a fifth
	// of one connection. While more than half of the buffer can go it has a half.
	restShare     = 4
	restShareFull = 1
	// troubleFor is how long to leave it after an error.
	troubleFor = time.Minute
)

// Run does the upkeep of a shard until the context ends. What fails is logged and tried again: the
// loop goes on without.
func (u *Upkeep) Run(ctx context.Context, shard int32) {
	r := u.of(shard)
	purge, snapshot := time.NewTimer(0), time.NewTimer(0)
	defer purge.Stop()
	defer snapshot.Stop()
	if u.Archive == nil {
		snapshot.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-purge.C:
			purge.Reset(r.purge(ctx))
		case <-snapshot.C:
			snapshot.Reset(r.archive(ctx))
		}
	}
}

// Finish archives a snapshot of each shard for which one is due, after a run that was too short to.
func (u *Upkeep) Finish(ctx context.Context, shards []int32) {
	for _, shard := range shards {
		if u.Archive != nil && ctx.Err() == nil {
			u.of(shard).archive(ctx)
		}
	}
}

func (u *Upkeep) of(shard int32) *upkeep {
	r := &upkeep{Upkeep: u, shard: shard, logger: u.Logger.With("service", "upkeep")}
	if u.Shards > 1 {
		r.logger = r.logger.With("shard", shard)
	}
	return r
}

// upkeep is that of one shard.
type upkeep struct {
	*Upkeep
	shard  int32
	logger *slog.Logger
	// swept is when the last purge ran to its end; zero before, when what an earlier worker left is
	// not known.
	swept time.Time
}

// purge deletes what can go, if that pays, and gives how long to wait.
func (u *upkeep) purge(ctx context.Context) time.Duration {
	p, err := u.Store.Purge(ctx, u.Generation, u.shard, u.Retain)
	if err == nil && p != nil && u.pays(p) {
		err = u.sweep(ctx, p)
	}
	if err != nil && ctx.Err() == nil {
		u.logger.Error("cannot purge what no retained epoch needs", "error", err)
		return troubleFor
	}
	return purgeEvery
}

func (u *upkeep) pays(p *store.Purge) bool {
	switch {
	case u.swept.IsZero():
		return true
	case p.Dead <= 0:
		return false
	}
	return p.Dead*purgeShare*int64(u.Shards) >= p.Rows || time.Since(u.swept) >= purgeAtLeast
}

func (u *upkeep) sweep(ctx context.Context, p *store.Purge) error {
	begun := time.Now()
	share := restShare
	if 2*p.Dead*int64(u.Shards) > p.Rows {
		share = restShareFull
	}
	gone := int64(0)
	more, err := p.Begin(ctx)
	for more && err == nil {
		step := time.Now()
		var deleted int64
		deleted, more, err = p.Step(ctx)
		gone += deleted
		if err == nil && more {
			err = sleep(ctx, max(time.Duration(share)*time.Since(step), time.Millisecond))
		}
	}
	if err != nil {
		return err
	}
	u.swept = time.Now()
	if gone > 0 {
		u.logger.Debug("purged buffer rows that no retained epoch needs", "rows", gone,
			"oldest_retained_epoch", p.Epoch, "took", time.Since(begun).Round(time.Millisecond))
	}
	return nil
}

// archive takes a snapshot if one is due, and gives how long to wait.
func (u *upkeep) archive(ctx context.Context) time.Duration {
	wait, err := u.Archive.take(ctx, u)
	if err != nil && ctx.Err() == nil {
		u.logger.Error("cannot archive a snapshot; older ones are kept", "error", err)
		return min(troubleFor, u.Every)
	}
	return wait
}

// keepUp runs the upkeep of the worker's shard beside the loop, until stop is called.
func (w *worker) keepUp(ctx context.Context) (stop func()) {
	if w.Upkeep == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Upkeep(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
