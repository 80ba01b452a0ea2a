package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// xactLocker keeps two migrations of one schema from running at once. The lock is held by an open
// transaction on a connection of its own, so that it survives transaction pooling.
type xactLocker struct {
	schema string
	tx     *sql.Tx
}

// Lock waits for the lock and holds it.
func (l *xactLocker) Lock(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("open the transaction of the migration lock: %w", err)
	}
	const lock = "select pg_advisory_xact_lock(hashtextextended('tallystick migrate ' || $1, 0))"
	if _, err := tx.ExecContext(ctx, lock, l.schema); err != nil {
		return errors.Join(fmt.Errorf("take the migration lock of schema %s: %w", l.schema, err),
			tx.Rollback())
	}
	l.tx = tx
	return nil
}

// Unlock ends the transaction and with it the lock.
func (l *xactLocker) Unlock(context.Context, *sql.DB) error {
	return l.tx.Rollback()
}
