package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// fallBack goes back to the newest epoch that verifies. It gives what is damaged, and the epoch.
func (h *Shard) fallBack(ctx context.Context, first *findings) ([]Damage, int64, error) {
	p, err := h.plan(ctx, first)
	if err != nil {
		return nil, 0, err
	}
	i := p.target()
	if i < 0 {
		return nil, 0, fmt.Errorf("no epoch that is retained verifies: %w; tally restore "+
			"--from-archive gets the rows back, tally rebuild --auto makes them anew from the sources",
			damageError(p.found.damage()))
	}
	to, err := h.goBack(ctx, p, i)
	return p.found.damage(), to, err
}

// goBack makes the shard what it was after the epoch at a place of the plan's base.
//
// When the connection is lost the outcome is unknown. The shard is acquired again, which waits for
// a transaction under way and bars one that has not begun; whether it was done is seen by whoever
// verifies next.
func (h *Shard) goBack(ctx context.Context, p *plan, i int) (int64, error) {
	if err := h.raiseToken(ctx, p.tokenMax); err != nil {
		return 0, err
	}
	b := &backStep{shard: h, plan: p, to: p.base[i], chain: p.base[:i+1], held: p.epoch}
	err := h.store.retry(ctx, func() error {
		if h.unsettled {
			epoch, err := h.settleBack(ctx)
			if err != nil {
				return err
			}
			if epoch == p.number {
				return nil // it was done
			}
		}
		return b.transact(ctx)
	})
	if err != nil {
		return 0, fmt.Errorf("go back to epoch %d: %w", b.to.epoch, err)
	}
	return b.to.epoch, nil
}

// raiseToken makes the token the highest there is, where the row was set back by hand.
func (h *Shard) raiseToken(ctx context.Context, highest int64) error {
	if h.token >= highest {
		return nil
	}
	h.token = highest
	_, err := h.settleBack(ctx)
	return err
}

// settleBack acquires the shard again, and gives the epoch at which it stands.
func (h *Shard) settleBack(ctx context.Context) (epoch int64, err error) {
	conn, err := h.store.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	h.token++
	h.reacquired.Add(1)
	take := h.statement("reacquire")
	take.args.uuid(h.attempt)
	take.args.int8(h.token)
	take.args.int8(h.store.leaseFor.Microseconds())
	held := false
	err = readAll(ctx, conn.Conn().PgConn(), take, func(v [][]byte) {
		held, epoch = true, readInt8(v[0])
	})
	if err == nil && !held {
		err = ErrFenced
	}
	if err == nil {
		h.unsettled = false
		h.seen.token.Store(h.token)
	}
	return epoch, err
}

// backStep is the transaction that goes back.
type backStep struct {
	shard *Shard
	plan  *plan
	to    *storedManifest
	chain []*storedManifest
	// held is the epoch at which the shard's row stands.
	held int64
	// delta and manifest are what the step leaves on record.
	delta    stream.Delta
	manifest manifest
}

func (b *backStep) transact(ctx context.Context) error {
	h := b.shard
	conn, err := h.store.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err = b.send(ctx, conn.Conn().PgConn()); err == nil {
		return nil
	}
	h.abort(ctx, conn, err)
	if hasCode(err, codeDivisionByZero) {
		return ErrFenced
	}
	return err
}

func (b *backStep) send(ctx context.Context, conn *pgconn.PgConn) error {
	h := b.shard
	b.describe()
	const clock = 3 // the place of its statement
	readClock := func(rows *pgconn.ResultReader) error {
		for rows.NextRow() {
			b.delta.Clock = readTime(rows.Values()[1])
		}
		return nil
	}
	err := h.store.run(ctx, conn, b.statements(), map[int]reader{clock: readClock})
	if err != nil {
		return err
	}
	if err := b.readBack(ctx, conn); err != nil {
		return err
	}
	notify := statement{name: "epoch_notify", sql: h.store.sql("epoch_notify")}
	notify.args.text(fmt.Sprintf(`{"generation": %d, "shard": %d, "epoch": %d}`,
		h.generation, h.shard, b.delta.Epoch))
	return h.store.run(ctx, conn, []statement{
		h.manifest(&b.delta, &b.manifest), notify, {name: "commit", sql: "commit"},
	}, nil)
}

// describe begins the record of the step: it stands where the epoch stood, and reads nothing.
func (b *backStep) describe() {
	b.delta = stream.Delta{
		Epoch: b.plan.number, WatermarkBefore: b.to.after, WatermarkAfter: b.to.after,
	}
	b.delta.Counts.Buffered = b.to.counts[countBuffered]
	for _, o := range b.offsets() {
		b.delta.Progress = append(b.delta.Progress, o.Progress)
	}
	b.manifest = manifest{
		kind: kindRestore, parent: b.to.epoch, parentDigest: b.to.real, live: b.to.live,
		sources: describeSources(b.delta.Progress),
	}
}

// offsets gives how far each partition was read by then, by the retained manifests, and by older ones
// where those don't mention it.
func (b *backStep) offsets() []storedOffset {
	list := progressAt(b.chain)
	known := map[stream.Partition]bool{}
	for _, o := range list {
		known[o.Partition] = true
	}
	for _, o := range b.plan.expected {
		if !known[o.Partition] && o.epoch <= b.to.epoch {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(x, y storedOffset) int { return x.Compare(y.Partition) })
	return list
}

// statements are those of the step before what it wrote is read back.
func (b *backStep) statements() []statement {
	h, to := b.shard, b.to.epoch
	fence := h.statement("restore_fence")
	fence.args.int8(h.token)
	fence.args.int8(b.held)
	fence.args.int8(b.delta.Epoch)
	fence.args.time(b.to.after)
	fence.args.int8(h.store.leaseFor.Microseconds())
	fence.args.int8(to)
	manifests := h.statement("restore_manifests")
	manifests.args.int8(b.chain[0].epoch)
	b.addChain(&manifests)
	buffer := h.statement("restore_buffer")
	buffer.args.int8(to)
	results := h.statement("restore_results")
	results.args.int8(to)
	results.args.int8(b.delta.Epoch)
	damaged := b.plan.damagedResults()
	bytesOf(&results.args, damaged)
	said := h.statement("restore_said")
	bytesOf(&said.args, damaged)
	aside := h.statement("restore_aside")
	aside.args.int8(to)
	b.addChain(&aside)
	list := []statement{
		{name: "begin", sql: "begin"},
		{name: "epoch_settings", sql: h.store.sql("epoch_settings")},
		{name: "scan_settings", sql: h.store.sql("scan_settings")},
		{name: "clock", sql: h.store.sql("clock")},
		fence, manifests, buffer, h.statement("restore_offsets"), results,
		said, aside,
	}
	if len(b.delta.Progress) > 0 {
		list = append(list, h.encodeOffsets(&b.delta))
	}
	attempts := h.statement("restore_attempts")
	attempts.args.int8(b.chain[0].epoch)
	return append(list, h.statement("restore_released"), attempts, b.note())
}

func (b *backStep) addChain(s *statement) {
	array(&s.args, int8Array, b.chain, func(out []byte, m **storedManifest) []byte {
		return appendInt8(out, (*m).epoch)
	})
}

func (b *backStep) note() statement {
	s := b.shard.statement("restore_note")
	s.args.uuid(b.shard.attempt)
	s.args.int8(b.to.epoch)
	s.args.jsonb(describeDamage(b.plan.found.damage()))
	return s
}

// readBack compares what the step made with what the epoch's manifest says, and takes its output
// into the record.
func (b *backStep) readBack(ctx context.Context, conn *pgconn.PgConn) error {
	h := b.shard
	dec := decoder{shard: h}
	err := readAll(ctx, conn, h.loadRows(b.to.after), func(v [][]byte) {
		dec.row(v[:12], v[12])
	})
	if err != nil {
		return err
	}
	if dec.live != b.to.live || len(dec.damage) > 0 {
		return fmt.Errorf("%w: the buffer is not what it was after epoch %d", ErrDamaged, b.to.epoch)
	}
	_, err = h.readOutput(ctx, conn, &b.delta, &b.manifest)
	return err
}
