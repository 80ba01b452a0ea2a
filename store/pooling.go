package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/queries"
)

// Pooling says whether a pooler is between a client and the server, and what it hands out.
type Pooling string

// The ways of a pooler. What is kept in a session is lost under PoolsTransactions.
const (
	PoolsNothing      Pooling = ""
	PoolsSessions     Pooling = "session"
	PoolsTransactions Pooling = "transaction"
)

// poolingTries is how often two connections are compared: other clients of the pooler may take the
// session away that would have given it away.
const poolingTries = 3

var processSQL = queries.Engine("process")

// FindPooling finds out what is in between. A pooler gives a process number of its own to the
// client. Whether it pools transactions shows when one connection is given the session that another
// one, which is open but in no transaction, had a moment before, or has its own session changed.
// It needs two connections of the pool. A pooler that refuses transactions is an error.
func FindPooling(ctx context.Context, pool *pgxpool.Pool) (Pooling, error) {
	first, err := pool.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("look for a pooler: %w", err)
	}
	defer first.Release()
	pid, err := processOf(ctx, first)
	if err != nil {
		return "", err
	}
	if pid == first.Conn().PgConn().PID() {
		return PoolsNothing, nil
	}
	second, err := pool.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("look for a pooler: %w", err)
	}
	defer second.Release()
	for range poolingTries {
		moved, err := changesHands(ctx, first, second)
		if err != nil {
			return "", err
		}
		if moved {
			return PoolsTransactions, nil
		}
	}
	return PoolsSessions, nil
}

// Pooling is FindPooling on the store's own connections.
func (s *Store) Pooling(ctx context.Context) (Pooling, error) {
	return FindPooling(ctx, s.pool)
}

// changesHands tells whether a session moves from one connection to another.
func changesHands(ctx context.Context, first, second *pgxpool.Conn) (bool, error) {
	before, err := processOf(ctx, first)
	if err != nil {
		return false, err
	}
	tx, err := second.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("look for a pooler: begin: %w", err)
	}
	var other int32
	err = tx.QueryRow(ctx, processSQL).Scan(&other)
	var after uint32
	if err == nil && uint32(other) != before {
		// The other transaction is still open: a session of its own can't have changed.
		after, err = processOf(ctx, first)
	}
	if err := errors.Join(err, tx.Rollback(ctx)); err != nil {
		return false, fmt.Errorf("look for a pooler: %w", err)
	}
	return uint32(other) == before || after != before, nil
}

func processOf(ctx context.Context, conn *pgxpool.Conn) (uint32, error) {
	var pid int32
	if err := conn.QueryRow(ctx, processSQL).Scan(&pid); err != nil {
		return 0, fmt.Errorf("look for a pooler: %w", err)
	}
	return uint32(pid), nil
}
