package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rollbackTimeout bounds a rollback, which runs even after its caller was cancelled.
const rollbackTimeout = 5 * time.Second

// Commit makes an epoch durable: all of it in one transaction, exactly once, or nothing.
//
// The transaction begins with the fence, an update of the shard's row that succeeds only under the
// epoch and the token that this attempt holds. It locks the row, so no two transactions of a shard
// overlap, and every later write depends on it.
//
// When the connection is lost at any point the outcome is unknown: the transaction may be over, may
// still run, or may not have begun because its messages are still on their way. So before anything
// else is written the shard is acquired again, on a new connection, under a higher token. That
// update waits on the lock of a transaction that still runs, and makes the fence of one that has
// not begun fail, however late it comes. Afterwards the shard's epoch says what happened: the new
// epoch, with a manifest of this attempt, means that it was committed; the parent means that it was
// not and never will be, and it is sent again. The token is chosen by this side and only grows, and
// the update asks for this attempt and a lower token, so that the acquisition itself may be lost,
// repeated or executed late without harm. It fails when another attempt has taken the shard.
//
// Conflicts, lost connections and a full disk are retried for Config.RetryFor. Errors: ErrFenced,
// ErrTimedOut, ErrUnknown when the time ran out before the outcome was known (a later Commit of the
// same epoch, or the next Take, finds it out), ErrWentBack, else see Classify.
func (h *Shard) Commit(ctx context.Context, e *Epoch) error {
	clean := !h.unsettled
	err := h.store.retry(ctx, func() error {
		if h.unsettled {
			clean = false
			committed, err := h.settle(ctx, e)
			if committed || err != nil {
				return err
			}
		}
		return h.write(ctx, e)
	})
	if err != nil {
		if h.unsettled && !errors.Is(err, ErrFenced) {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if errors.Is(err, ErrFenced) {
			err = h.whyFenced(ctx, err)
		}
		return fmt.Errorf("commit epoch %d of shard %d: %w", e.delta.Epoch, h.shard, err)
	}
	h.epoch = e.delta.Epoch
	h.seen.epoch.Store(h.epoch)
	h.digest = e.digest
	if clean { // a lost connection may still be reading them
		e.recycle()
	}
	return nil
}

// write sends the epoch once, and once more by upsert when an identity taken for new is there.
func (h *Shard) write(ctx context.Context, e *Epoch) error {
	err := h.transact(ctx, e)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeUniqueViolation && pg.TableName == "match" &&
		!e.upsertAll {
		h.redone.Add(1)
		e.upsertAll = true
		h.encodeResults(e)
		return h.transact(ctx, e)
	}
	return err
}

// transact runs the transaction on a connection of its own.
func (h *Shard) transact(ctx context.Context, e *Epoch) error {
	conn, err := h.store.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = h.send(ctx, conn.Conn().PgConn(), e)
	if err == nil {
		return nil
	}
	h.abort(ctx, conn, err)
	switch {
	case hasCode(err, codeDivisionByZero):
		return ErrFenced
	case missedResult(err):
		return fmt.Errorf("%w: a result that the epoch withdraws is not there, or was withdrawn "+
			"by hand; tally verify names the rows", ErrDamaged)
	case hasCode(err, codeQueryCanceled):
		return fmt.Errorf("%w: %w", ErrTimedOut, err)
	}
	return err
}

// abort ends a failed transaction. Without certainty that the server has ended it, the shard is
// unsettled.
func (h *Shard) abort(ctx context.Context, conn *pgxpool.Conn, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if !conn.Conn().IsClosed() {
		if _, err := conn.Conn().PgConn().Exec(ctx, "rollback").ReadAll(); err == nil {
			if hasCode(cause, codeReadOnly) {
				h.store.pool.Reset() // the primary is elsewhere now
			}
			return
		}
		_ = conn.Conn().Close(ctx) // it is broken, whatever this says
	}
	h.unsettled = true
}

// send writes the epoch in as few round trips as COPY allows: the fence, each COPY, the rest; all in
// one when there is nothing to copy. The COPY of the transitions comes before the statement that adds
// others: so it appends to their primary key, which is cheaper than to fill in between.
func (h *Shard) send(ctx context.Context, conn *pgconn.PgConn, e *Epoch) error {
	batch := h.begin(e)
	if !e.copies.empty() {
		if err := h.store.run(ctx, conn, batch, nil); err != nil {
			return err
		}
		if err := h.sendCopies(ctx, conn, e.copies); err != nil {
			return err
		}
		batch = nil
	}
	batch = append(batch, e.statements...)
	readDigest := map[int]reader{len(batch): func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			copy(e.digest[:], rows.Values()[0])
		}
		return nil
	}}
	return h.store.run(ctx, conn, append(batch, h.end(e)...), readDigest)
}

func (h *Shard) sendCopies(ctx context.Context, conn *pgconn.PgConn, c *copies) error {
	for _, part := range []struct {
		name string
		rows []byte
	}{
		{"epoch_buffer_copy", c.buffer},
		{"epoch_match_copy", c.match},
		{"epoch_transition_copy", c.transition},
	} {
		if len(part.rows) == 0 {
			continue
		}
		err := h.store.step(ctx, part.name, func() error {
			_, err := conn.CopyFrom(ctx, bytes.NewReader(part.rows), h.store.sql(part.name))
			return err
		})
		if err != nil {
			return markLost(conn, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	return nil
}

func (h *Shard) begin(e *Epoch) []statement {
	fence := h.statement("epoch_fence")
	fence.args.int8(h.token)
	fence.args.int8(h.epoch)
	fence.args.int8(e.delta.Epoch)
	fence.args.time(e.delta.WatermarkAfter)
	fence.args.int8(h.store.leaseFor.Microseconds())
	const settings = "epoch_settings"
	return []statement{
		{name: "begin", sql: "begin"},
		{name: settings, sql: h.store.sql(settings)},
		fence,
	}
}

func (h *Shard) end(e *Epoch) []statement {
	notify := statement{name: "epoch_notify", sql: h.store.sql("epoch_notify")}
	notify.args.text(fmt.Sprintf(`{"generation": %d, "shard": %d, "epoch": %d}`,
		h.generation, h.shard, e.delta.Epoch))
	e.manifest.parent, e.manifest.parentDigest = h.epoch, h.digest
	return []statement{
		h.manifest(e.delta, &e.manifest), notify, {name: "commit", sql: "commit"},
	}
}

// settle acquires the shard again and tells whether the epoch was committed.
func (h *Shard) settle(ctx context.Context, e *Epoch) (committed bool, err error) {
	conn, err := h.store.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	h.token++
	h.reacquired.Add(1)
	held, epoch, attempt, digest, err := h.reacquire(ctx, conn.Conn().PgConn(), e)
	switch {
	case err != nil:
		return false, err
	case !held:
		return false, ErrFenced
	}
	h.unsettled = false
	h.seen.token.Store(h.token)
	switch {
	case epoch == h.epoch:
		return false, nil
	case epoch == e.delta.Epoch && attempt == pgtype.UUID{Bytes: h.attempt, Valid: true}:
		h.resolved.Add(1)
		e.digest = digest
		return true, nil
	}
	return false, fmt.Errorf("%w: it stands at epoch %d, which this attempt did not write",
		ErrFenced, epoch)
}

// reacquire takes the shard under the present token. It runs in one transaction but the manifest is
// read by a statement of its own, whose snapshot sees what the first one had to wait for.
func (h *Shard) reacquire(
	ctx context.Context, conn *pgconn.PgConn, e *Epoch,
) (held bool, epoch int64, attempt pgtype.UUID, digest [digestSize]byte, err error) {
	take := h.statement("reacquire")
	take.args.uuid(h.attempt)
	take.args.int8(h.token)
	take.args.int8(h.store.leaseFor.Microseconds())
	look := h.statement("manifest_attempt")
	look.args.int8(e.delta.Epoch)
	err = runBatch(ctx, conn, []statement{take, look}, map[int]reader{
		0: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				held, epoch = true, readInt8(rows.Values()[0])
			}
			return nil
		},
		1: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				attempt.Valid = true
				copy(attempt.Bytes[:], rows.Values()[0])
				copy(digest[:], rows.Values()[1])
			}
			return nil
		},
	})
	return held, epoch, attempt, digest, err
}

func (c *copies) empty() bool { return len(c.buffer)+len(c.match)+len(c.transition) == 0 }
