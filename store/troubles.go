package store

import (
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// Troubles count what operations had to outlast since the store was opened.
type Troubles struct {
	// Conflicts are transactions ended because of another one: serialization failures, deadlocks
	// and lock timeouts.
	Conflicts int64
	// Lost are connections that broke or could not be made, for whatever reason.
	Lost int64
	// DiskFull are transactions ended because the server had no room.
	DiskFull int64
	// Unreplicated are commits that the server confirmed without having heard from its synchronous
	// standbys: see Config.OnUnreplicated.
	Unreplicated int64
}

// Any tells whether there was any trouble.
func (t Troubles) Any() bool { return t != Troubles{} }

// Troubles gives the counts so far.
func (s *Store) Troubles() Troubles {
	return Troubles{
		Conflicts: s.troubles.conflicts.Load(), Lost: s.troubles.lost.Load(),
		DiskFull: s.troubles.diskFull.Load(), Unreplicated: s.troubles.unreplicated.Load(),
	}
}

type troubles struct {
	conflicts, lost, diskFull, unreplicated atomic.Int64
}

func (t *troubles) count(err error) {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && classOf(pg.Code) == DiskFull:
		t.diskFull.Add(1)
	case pg != nil && conflict(pg.Code):
		t.conflicts.Add(1)
	default:
		t.lost.Add(1)
	}
}

// TroubleOf names the kind of an error that is retried, for people.
func TroubleOf(err error) string {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && classOf(pg.Code) == DiskFull:
		return "the server's disk is full, pausing until there is room"
	case pg != nil && conflict(pg.Code):
		return "another transaction was in the way, trying again"
	case pg != nil && pg.Code == codeTooManyConnections:
		return "the server has no connection to spare, waiting for one"
	}
	return "postgres is away, trying again"
}

// syncWait is the routine of the server that waits for synchronous standbys. It has no SQLSTATE of
// its own and its text is translated; the name of the routine is not.
const syncWait = "SyncRepWaitForLSN"

// watchNotices listens for what the server says beside its answers, after whoever listens already.
func (s *Store) watchNotices(config *pgconn.Config) {
	before := config.OnNotice
	config.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		if before != nil {
			before(conn, notice)
		}
		if notice.Routine != syncWait {
			return
		}
		s.troubles.unreplicated.Add(1)
		if s.onUnreplicated != nil {
			s.onUnreplicated(notice.Message)
		}
	}
}
