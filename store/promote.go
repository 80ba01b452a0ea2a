package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Promotion makes what a candidate found out the truth.
type Promotion struct {
	Reconciliation string
	// Candidate is a candidate, or a generation that has served and shall serve again.
	Candidate int32
	// Worker names who promotes, in the attempts.
	Worker string
	// Ready is asked under lock, with where the shards of both generations stand: its error refuses.
	Ready func(ctx context.Context, base, candidate []State) error
	// Settles tells which open corrections of the base the candidate has settled. A record that
	// several shards have set aside is settled in all of them or in none.
	Settles func(ctx context.Context, c *OpenCorrection) (bool, error)
}

// Promoted tells what a promotion did.
type Promoted struct {
	// Epoch is the one with which it was written, into each shard.
	Epoch int64
	// Changes counts the results that differ, Resolved the corrections that it settled.
	Changes, Resolved int64
}

// Promote lets a full candidate serve, or merges an interval into its base, in one transaction, so that
// a reader sees what served before or all of the new. Workers of both generations are fenced off by
// it and take their shards again.
//
// How the results differ from those served before is written as an epoch of the kind rebuild into
// each shard that serves from then on, with a number above all others of both generations; its
// transitions have the reason rebuild and go out from the status that readers saw. The same
// promotion twice is one.
//
// Errors: ErrNotReady, ErrNotValidated, what Ready and Settles return.
func (s *Store) Promote(ctx context.Context, p Promotion) (done Promoted, err error) {
	err = s.retry(ctx, func() error {
		t := &promotion{Promotion: p, store: s, done: done}
		err := t.transact(ctx)
		done = t.done
		return err
	})
	if err != nil {
		return done, fmt.Errorf("promote generation %d of %s: %w", p.Candidate, p.Reconciliation, err)
	}
	return done, nil
}

// promotion is one try.
type promotion struct {
	Promotion
	store *Store
	tx    pgx.Tx
	done  Promoted
	// base serves, candidate shall.
	base, candidate *Generation
	// attempts are those under which the shards are locked.
	attempts map[place]uuid.UUID
}

// place names a shard.
type place struct{ generation, shard int32 }

// transact runs the transaction. What a try has done that lost its connection in the COMMIT, the next
// one finds done.
func (t *promotion) transact(ctx context.Context) (err error) {
	if t.tx, err = t.store.pool.Begin(ctx); err != nil {
		return err
	}
	defer func() { _ = t.tx.Rollback(context.WithoutCancel(ctx)) }() // nothing, after the COMMIT
	if err := t.run(ctx); err != nil {
		return err
	}
	return t.store.step(ctx, "commit", func() error { return t.tx.Commit(ctx) })
}

func (t *promotion) run(ctx context.Context) error {
	already, err := t.look(ctx)
	if err != nil || already {
		return err
	}
	t.done = Promoted{}
	if err := t.fence(ctx); err != nil {
		return fmt.Errorf("lock the shards: %w", err)
	}
	if err := t.ready(ctx); err != nil {
		return err
	}
	err = t.row(ctx, "generation_number", []any{&t.done.Epoch}, []int32{t.base.ID, t.candidate.ID})
	if err != nil {
		return fmt.Errorf("number the epoch: %w", err)
	}
	if err := t.change(ctx); err != nil {
		return err
	}
	if err := t.resolve(ctx); err != nil {
		return fmt.Errorf("resolve corrections: %w", err)
	}
	return t.point(ctx)
}

// look locks the reconciliation and finds both generations. It tells whether the promotion is
// already done.
func (t *promotion) look(ctx context.Context) (already bool, err error) {
	if err := t.exec(ctx, "register_reconciliation", t.Reconciliation); err != nil {
		return false, fmt.Errorf("lock it: %w", err)
	}
	list, err := t.store.generations(ctx, t.tx, t.Reconciliation)
	if err != nil {
		return false, fmt.Errorf("read its generations: %w", err)
	}
	for i := range list {
		if g := &list[i]; g.Status == Serving {
			t.base = g
		}
		if g := &list[i]; g.ID == t.Candidate {
			t.candidate = g
		}
	}
	switch {
	case t.candidate == nil || t.base == nil:
		return false, fmt.Errorf("%w: there is no such generation; tally generation list shows them",
			ErrNotReady)
	case t.candidate.Status == Serving, t.candidate.Status == Merged:
		return true, nil
	case t.candidate.Status == Retired:
		return false, nil
	case t.candidate.Status != Candidate:
		return false, fmt.Errorf("%w: it is %s", ErrNotReady, t.candidate.Status)
	}
	return false, t.validated(ctx)
}

// fence locks the shards of both.
func (t *promotion) fence(ctx context.Context) error {
	t.attempts = map[place]uuid.UUID{}
	return t.store.step(ctx, "generation_fence", func() error {
		rows, err := t.tx.Query(ctx, t.store.sql("generation_fence"),
			[]int32{t.base.ID, t.candidate.ID}, t.Worker)
		if err != nil {
			return err
		}
		var at place
		var attempt string
		_, err = pgx.ForEachRow(rows, []any{&at.generation, &at.shard, &attempt}, func() (err error) {
			t.attempts[at], err = uuid.Parse(attempt)
			return err
		})
		return err
	})
}

// validated refuses what was not compared with what serves now, or did not pass.
func (t *promotion) validated(ctx context.Context) error {
	var base int32
	var passed bool
	err := t.row(ctx, "generation_validated", []any{&base, &passed}, t.candidate.ID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: tally rebuild validate compares it", ErrNotValidated)
	case err != nil:
		return fmt.Errorf("read its validation: %w", err)
	case base != t.base.ID, t.candidate.Base != t.base.ID:
		return fmt.Errorf("%w: generation %d serves meanwhile, it was begun beside %d; begin another",
			ErrNotValidated, t.base.ID, t.candidate.Base)
	case !passed:
		return fmt.Errorf("%w: it has differences that nothing explains; tally rebuild validate shows "+
			"them", ErrNotValidated)
	}
	return nil
}

// ready refuses a candidate that does not stand where it has to.
func (t *promotion) ready(ctx context.Context) error {
	base, err := t.store.standing(ctx, t.tx, t.base.ID)
	if err != nil {
		return fmt.Errorf("read where generation %d stands: %w", t.base.ID, err)
	}
	candidate, err := t.store.standing(ctx, t.tx, t.candidate.ID)
	if err != nil {
		return fmt.Errorf("read where it stands: %w", err)
	}
	if t.candidate.Status == Candidate {
		for i := range candidate {
			if candidate[i].Watermark < t.candidate.CatchUp.Watermark {
				return fmt.Errorf("%w: shard %d is still being built; tally rebuild run goes on with it",
					ErrNotReady, i)
			}
		}
	}
	if t.Ready == nil {
		return nil
	}
	return t.Ready(ctx, base, candidate)
}

// target is the generation whose shards get the epoch.
func (t *promotion) target() *Generation {
	if t.candidate.Kind == Interval {
		return t.base
	}
	return t.candidate
}

// change writes the differences and, for each shard, the epoch that they belong to. They and what
// follows are planned as statements that compare whole tables.
func (t *promotion) change(ctx context.Context) error {
	if err := t.exec(ctx, "scan_settings"); err != nil {
		return err
	}
	if err := t.differences(ctx); err != nil {
		return fmt.Errorf("write the differences: %w", err)
	}
	for shard := range t.target().Shards {
		if err := t.seal(ctx, shard); err != nil {
			return fmt.Errorf("write epoch %d of shard %d: %w", t.done.Epoch, shard, err)
		}
	}
	return nil
}

// differences writes them.
func (t *promotion) differences(ctx context.Context) error {
	if t.candidate.Kind == Interval {
		reach, err := t.reach(ctx)
		if err != nil {
			return err
		}
		from := (t.candidate.Interval.From - reach).String()
		to := (t.candidate.Interval.To + reach).String()
		if err := t.outside(ctx, from, to); err != nil {
			return err
		}
		return t.exec(ctx, "rebuild_merge", t.base.ID, t.candidate.ID, t.done.Epoch, from, to)
	}
	keys, shards, err := t.places(ctx)
	if err != nil {
		return err
	}
	return t.exec(ctx, "rebuild_promote", t.base.ID, t.candidate.ID, t.done.Epoch, keys, shards)
}

// outside refuses where what serves has taken another revision meanwhile.
func (t *promotion) outside(ctx context.Context, from, to string) error {
	var served string
	err := t.row(ctx, "validate_outside", []any{&served}, t.base.ID, t.candidate.ID, from, to, 1)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for other revisions: %w", err)
	}
	return fmt.Errorf("%w: %s", ErrNotReady, served)
}

// reach is how far apart the members of a pair can be.
func (t *promotion) reach(ctx context.Context) (stream.Micros, error) {
	var reach int64
	err := t.row(ctx, "rebuild_reach", []any{&reach}, t.candidate.ID)
	return stream.Micros(reach), err
}

// places gives the shards of keys whose results only the base has, where they are not those that
// they have there.
func (t *promotion) places(ctx context.Context) (keys []string, shards []int32, err error) {
	if t.base.Shards == t.candidate.Shards {
		return []string{}, []int32{}, nil
	}
	rows, err := t.tx.Query(ctx, t.store.sql("rebuild_keys"), t.base.ID, t.candidate.ID)
	if err != nil {
		return nil, nil, err
	}
	keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
	shards = make([]int32, len(keys))
	for i, key := range keys {
		shards[i] = stream.ShardOf(key, t.candidate.Shards)
	}
	return keys, shards, err
}

// seal writes the manifest of the epoch in one shard.
func (t *promotion) seal(ctx context.Context, shard int32) error {
	h := &Shard{store: t.store, generation: t.target().ID, shard: shard}
	h.attempt = t.attempts[place{h.generation, shard}]
	d, m, err := t.tip(ctx, h)
	if err != nil {
		return err
	}
	conn := t.tx.Conn().PgConn()
	n, err := h.readOutput(ctx, conn, d, m)
	if err != nil {
		return err
	}
	t.done.Changes += n
	notify := statement{name: "epoch_notify", sql: t.store.sql("epoch_notify")}
	notify.args.text(fmt.Sprintf(`{"generation": %d, "shard": %d, "epoch": %d}`,
		h.generation, shard, d.Epoch))
	if err := t.store.run(ctx, conn, []statement{h.manifest(d, m), notify}, nil); err != nil {
		return err
	}
	return t.exec(ctx, "generation_epoch", h.generation, shard, d.Epoch)
}

// tip begins the record of the epoch: it stands where the shard stood, and reads nothing.
func (t *promotion) tip(ctx context.Context, h *Shard) (*stream.Delta, *manifest, error) {
	d := &stream.Delta{Epoch: t.done.Epoch}
	m := &manifest{kind: kindRebuild, sources: "[]"}
	var watermark, clock micros
	var digest, live []byte
	var buffered *int64
	into := []any{&m.parent, &watermark, &digest, &live, &buffered, &clock}
	if err := t.row(ctx, "generation_tip", into, h.generation, h.shard); err != nil {
		return nil, nil, err
	}
	d.WatermarkBefore, d.WatermarkAfter = stream.Micros(watermark), stream.Micros(watermark)
	d.Clock = stream.Micros(clock)
	copy(m.parentDigest[:], digest)
	if live != nil {
		m.live = readSetDigest(live)
	}
	if buffered != nil {
		d.Counts.Buffered = *buffered
	}
	return d, m, nil
}

// point lets the candidate serve, or has it merged.
func (t *promotion) point(ctx context.Context) error {
	if t.candidate.Kind == Interval {
		return t.exec(ctx, "generation_merged", t.candidate.ID, t.done.Epoch)
	}
	err := t.exec(ctx, "generation_serve", t.Reconciliation, t.candidate.ID, t.base.ID, t.done.Epoch)
	if err != nil {
		return fmt.Errorf("move the pointer: %w", err)
	}
	return nil
}

// row runs a statement that gives one row.
func (t *promotion) row(ctx context.Context, name string, into []any, args ...any) error {
	return t.store.step(ctx, name, func() error {
		return t.tx.QueryRow(ctx, t.store.sql(name), args...).Scan(into...)
	})
}

func (t *promotion) exec(ctx context.Context, name string, args ...any) error {
	return t.store.step(ctx, name, func() error {
		_, err := t.tx.Exec(ctx, t.store.sql(name), args...)
		return err
	})
}
