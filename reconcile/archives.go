package reconcile

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/store/archive"
)

// Archives is the archive of one reconciliation.
type Archives struct {
	*archive.Archive
	Reconciliation string
	Generation     int32
}

func (a *Archives) of(shard int32) archive.Of {
	return archive.Of{Reconciliation: a.Reconciliation, Generation: a.Generation, Shard: shard}
}

// take archives a snapshot of the shard unless the newest is young, or of the same epoch. The clock
// of this machine says how young: it decides when, and nothing else.
func (a *Archives) take(ctx context.Context, u *upkeep) (wait time.Duration, err error) {
	_, epoch, err := u.Store.Stands(ctx, a.Generation, u.shard)
	if err != nil || epoch == 0 {
		return u.Every, err
	}
	list, err := a.List(ctx, a.of(u.shard))
	if err != nil {
		return 0, err
	}
	if len(list) > 0 {
		age := time.Since(list[0].Modified)
		if age >= 0 && age < u.Every {
			return u.Every - age, nil
		}
		if list[0].Epoch == epoch {
			return u.Every, nil
		}
	}
	begun := time.Now()
	taken, err := a.Take(ctx, a.of(u.shard), func(ctx context.Context, w io.Writer) (int64, error) {
		end, err := u.Store.Snapshot(ctx, a.Generation, u.shard, w)
		return end.Epoch, err
	})
	if err != nil {
		return 0, err
	}
	u.logger.Info("archived a snapshot", "epoch", taken.Epoch, "bytes", taken.Bytes,
		"took", time.Since(begun).Round(time.Millisecond))
	return u.Every, nil
}

// ErrNoSnapshot reports an archive without a snapshot of a shard that can be used.
var ErrNoSnapshot = errors.New("the archive has no snapshot that can be used")

// Restore makes a shard what an archived snapshot says: the one of an epoch, or where that is 0 the
// newest that is what was written. It is called after a shard is taken, and before its Restore; why
// is what Restore found damaged, if it was tried. It gives the epoch.
func (a *Archives) Restore(
	ctx context.Context, shard int32, h *store.Shard, epoch int64, why []store.Damage,
	logger *slog.Logger,
) (int64, error) {
	list, err := a.List(ctx, a.of(shard))
	if err != nil {
		return 0, err
	}
	failed := ErrNoSnapshot
	for _, s := range list {
		if epoch != 0 && s.Epoch != epoch {
			continue
		}
		restored, err := h.RestoreArchive(ctx, func(ctx context.Context) (io.ReadCloser, error) {
			return a.Read(ctx, s)
		}, why)
		if err == nil {
			return restored, nil
		}
		if !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, store.ErrSnapshot) {
			return 0, err
		}
		logger.Error("an archived snapshot can't be used", "name", s.Name, "error", err)
		failed = errors.Join(failed, err)
	}
	return 0, failed
}

// WithArchive gives leases whose shards fall back to the archive when no retained epoch verifies.
func WithArchive(leases Leases, a *Archives, logger *slog.Logger) Leases {
	return &archivedLeases{leases, a, logger}
}

type archivedLeases struct {
	Leases
	archive *Archives
	logger  *slog.Logger
}

// Take implements Leases.
func (l *archivedLeases) Take(ctx context.Context, shard int32) (Shard, store.State, error) {
	taken, state, err := l.Leases.Take(ctx, shard)
	if h, ok := taken.(*store.Shard); ok && err == nil {
		return &archivedShard{h, shard, l}, state, nil
	}
	return taken, state, err
}

// archivedShard is a shard with an archive behind it.
type archivedShard struct {
	*store.Shard
	shard  int32
	leases *archivedLeases
}

// Restore implements Shard.
func (s *archivedShard) Restore(
	ctx context.Context, depth store.Depth, begin func(store.State) store.Loader,
) (store.State, error) {
	state, err := s.Shard.Restore(ctx, depth, begin)
	var damaged *store.DamageError
	if !errors.As(err, &damaged) {
		return state, err
	}
	s.leases.logger.Error("no retained epoch verifies, looking for a snapshot in the archive",
		"error", err)
	from, found := state.Epoch, damaged.Found
	epoch, restoreErr := s.leases.archive.Restore(ctx, s.shard, s.Shard, 0, found,
		s.leases.logger)
	if restoreErr != nil {
		return state, errors.Join(err, restoreErr)
	}
	state, err = s.Shard.Restore(ctx, depth, begin)
	state.Damage = append(found, state.Damage...)
	if state.RestoredFrom == 0 {
		state.RestoredFrom, state.RestoredTo = from, epoch
	}
	return state, err
}
