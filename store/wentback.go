package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// ErrWentBack reports a shard that stands at an older epoch or token than this process has seen
// committed. Both only grow, so this is another copy of the database: a standby that had not
// received everything and was promoted, or a backup. Errors that wrap it are a *WentBackError.
var ErrWentBack = errors.New("the database went back to an older state")

// WentBackError says how far the database went back. All of the shard's state is of one epoch, so a
// new attempt can go on from it, if the sources still give what follows its offsets.
type WentBackError struct {
	// Seen is the newest epoch that was committed, Found the one that the shard stands at now.
	Seen, Found int64
	Before, Now ServerIdentity
}

func (e *WentBackError) Error() string {
	return fmt.Sprintf("%s: epoch %d where %d was committed; it was %s and is %s", ErrWentBack,
		e.Found, e.Seen, e.Before, e.Now)
}

// Is makes every WentBackError an ErrWentBack.
func (e *WentBackError) Is(target error) bool { return target == ErrWentBack }

// ServerIdentity tells copies of a database apart: a server made anew has another System, a standby
// that was promoted another Timeline. Both are 0 where the server doesn't tell.
type ServerIdentity struct{ System, Timeline int64 }

// String says it for people.
func (i ServerIdentity) String() string {
	if i == (ServerIdentity{}) {
		return "a server of unknown identity"
	}
	return fmt.Sprintf("system %d on timeline %d", uint64(i.System), i.Timeline)
}

// identified keeps the newest identity seen.
type identified struct {
	mu  sync.Mutex
	now ServerIdentity
}

// identify asks the server who it is and gives what was known before. A role or a server that does
// not tell leaves it unknown.
func (s *Store) identify(ctx context.Context) (before, now ServerIdentity) {
	row := s.pool.QueryRow(ctx, s.sql("server_identity"))
	if err := row.Scan(&now.System, &now.Timeline); err != nil {
		now = ServerIdentity{}
	}
	s.identity.mu.Lock()
	defer s.identity.mu.Unlock()
	before, s.identity.now = s.identity.now, now
	return before, now
}

// seen is the newest epoch and token that the server has confirmed to an attempt.
type seen struct{ epoch, token atomic.Int64 }

// whyFenced finds out why the shard is no longer this attempt's: another worker has taken it, or
// the database went back. It gives ErrFenced where the answer can't be had.
func (h *Shard) whyFenced(ctx context.Context, fenced error) error {
	var epoch, token int64
	err := h.store.retry(ctx, func() error {
		row := h.store.pool.QueryRow(ctx, h.store.sql("shard_stands"), h.generation, h.shard)
		err := row.Scan(&epoch, &token)
		if errors.Is(err, pgx.ErrNoRows) {
			epoch, token = 0, 0
			return nil
		}
		return err
	})
	if err != nil || epoch >= h.seen.epoch.Load() && token >= h.seen.token.Load() {
		return fenced
	}
	back := &WentBackError{Seen: h.seen.epoch.Load(), Found: epoch}
	back.Before, back.Now = h.store.identify(ctx)
	return back
}
