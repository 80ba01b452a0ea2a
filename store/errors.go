package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrRuleChanged reports another rule under a version that is in use.
	ErrRuleChanged = errors.New("the rule changed under the same version")
	// ErrOtherRule reports a rule version or number of shards that is not the serving one.
	ErrOtherRule = errors.New("the serving generation has another rule version or shards")
	// ErrNoShard reports a shard that was never registered.
	ErrNoShard = errors.New("no such shard")
	// ErrRetired reports a generation that nobody works on any more: another one serves, or it was
	// abandoned.
	ErrRetired = errors.New("the generation is no longer worked on")
	// ErrNotReady reports a candidate that can't be promoted yet, or not any more.
	ErrNotReady = errors.New("the candidate can't be promoted")
	// ErrNotValidated reports a candidate whose newest validation did not pass.
	ErrNotValidated = errors.New("the candidate is not validated")
	// ErrFenced reports that another worker has taken the shard. Nothing was written.
	ErrFenced = errors.New("the shard was taken by another worker")
	// ErrHeld reports a shard whose lease another worker holds.
	ErrHeld = errors.New("another worker holds the shard's lease")
	// ErrDamaged reports stored rows that are not what was written. Errors that wrap it are a
	// *DamageError where the rows are known.
	ErrDamaged = errors.New("stored rows are damaged")
	// ErrNotRetained reports an epoch that a shard can't go back to.
	ErrNotRetained = errors.New("the shard can't go back to that epoch")
	// ErrTimedOut reports a transaction ended by statement_timeout. Nothing was written; a smaller
	// epoch may fit.
	ErrTimedOut = errors.New("the epoch took longer than statement_timeout")
	// ErrUnknown reports a commit whose outcome could not be found out in time.
	ErrUnknown = errors.New("it is unknown whether the epoch was committed")
	// ErrNotOpen reports a quarantined record that can't be released.
	ErrNotOpen = errors.New("the record is not open")
)

// errLost marks an error that came with the loss of the connection, whatever the error itself is.
var errLost = errors.New("connection lost")

// markLost marks the error of an operation on conn when the connection did not survive it.
func markLost(conn *pgconn.PgConn, err error) error {
	if err != nil && conn.IsClosed() {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// Class says what a caller can do about an error.
type Class int

// The classes of error.
const (
	// Fatal can't heal by itself: a missing right or table, a broken constraint.
	Fatal Class = iota
	// Retry may succeed when it is tried again: conflicts, lost connections, failover.
	Retry
	// Unknown is a commit whose outcome is not known.
	Unknown
	// TimedOut may succeed with less work.
	TimedOut
	// DiskFull heals when somebody makes room.
	DiskFull
)

// SQLSTATE codes that decide the class; others by their first two characters.
const (
	codeUniqueViolation = "23505"
	codeNotNull         = "23502"
	codeDivisionByZero  = "22012"
	codeQueryCanceled   = "57014"
	codeReadOnly        = "25006"

	codeTooManyConnections = "53300"
)

// Classify tells what can be done about an error of this package.
func Classify(err error) Class {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrUnknown):
		return Unknown
	case errors.Is(err, ErrTimedOut):
		return TimedOut
	case errors.Is(err, context.Canceled):
		return Fatal
	case errors.Is(err, errLost):
		return Retry
	case errors.As(err, &pg):
		return classOf(pg.Code)
	case lost(err):
		return Retry
	}
	return Fatal
}

func classOf(code string) Class {
	switch code {
	case codeQueryCanceled:
		return TimedOut
	case "53100": // disk_full
		return DiskFull
	case codeTooManyConnections, codeReadOnly, "25P03":
		// the last is idle_in_transaction_session_timeout
		return Retry
	}
	if conflict(code) || strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P0") {
		return Retry
	}
	return Fatal
}

// conflict tells whether another transaction was in the way: serialization_failure,
// deadlock_detected, lock_not_available.
func conflict(code string) bool { return code == "40001" || code == "40P01" || code == "55P03" }

// lost tells whether an error that the server did not send means that it was not reached, or that
// the connection broke.
func lost(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pgconn.ErrConnClosed)
}

// missedResult tells that epoch_upsert found no active row that it was to withdraw.
func missedResult(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == codeNotNull && pg.TableName == "match_transition"
}

func hasCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}
