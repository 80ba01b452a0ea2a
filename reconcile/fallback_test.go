package reconcile_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// live is true of the rows that a start reads; of another one only a deep verification knows.
const live = `retired_epoch is null and horizon >= (
	select watermark from tally.shard s where s.generation_id = buffer.generation_id)`

// damages change one row of what a generation has stored, of the last epochs where there is a
// choice, and give the table.
var damages = []struct{ table, sql string }{
	{"buffer", `update tally.buffer set attributes = '{"forged":1}' where ctid = (
		select ctid from tally.buffer where generation_id = $1 and ` + live + `
		order by added_epoch desc, id limit 1)`},
	{"buffer", `update tally.buffer set event_time = event_time + interval '1 microsecond'
		where ctid = (select ctid from tally.buffer where generation_id = $1 and ` + live + `
			and event_time is not null order by added_epoch desc, id desc limit 1)`},
	{"buffer", `delete from tally.buffer where ctid = (
		select ctid from tally.buffer where generation_id = $1 and ` + live + `
		order by added_epoch desc, id limit 1)`},
	{"match", `update tally.match set status = 'superseded' where ctid = (
		select ctid from tally.match where generation_id = $1
			and status in ('matched', 'provisional', 'final')
		order by changed_epoch desc, match_id limit 1)`},
	{"match", `delete from tally.match where ctid = (
		select ctid from tally.match where generation_id = $1
		order by opened_epoch desc, match_id limit 1)`},
	{"match", `update tally.match set key = key || 'x' where ctid = (
		select ctid from tally.match where generation_id = $1
		order by opened_epoch desc, match_id limit 1)`},
	{"match_transition", `delete from tally.match_transition where ctid = (
		select ctid from tally.match_transition where generation_id = $1
		order by epoch desc, ordinal limit 1)`},
	{"source_offset", `update tally.source_offset set position = '1' || position
		where generation_id = $1 and source <> 'quarantine'`},
	{"source_offset", `delete from tally.source_offset where generation_id = $1`},
	{"shard", `update tally.shard set watermark = watermark + interval '1 microsecond'
		where generation_id = $1 and isfinite(watermark)`},
	{"shard", `update tally.shard set epoch = epoch + 3 where generation_id = $1`},
	{"epoch", `delete from tally.epoch where generation_id = $1 and epoch = (
		select max(epoch) from tally.epoch where generation_id = $1)`},
	{"epoch", `update tally.epoch set accepted = accepted + 1, read = read + 1
		where generation_id = $1 and epoch = (
		select max(epoch) from tally.epoch where generation_id = $1)`},
}

// TestDamageIsUndoneAndReplayed runs confluent histories with restarts, and between runs changes
// one row by hand. Each worker must find it, go back and replay with the same outputs, and in the
// end the active rows equal the batch join, or it must refuse to start.
func TestDamageIsUndoneAndReplayed(t *testing.T) {
	t.Parallel()
	db, st := openStore(t)
	var total tally
	histories := 0
	for seed := range oracle.Seeds(t, 600, 20) {
		history := oracle.Generate(seed, oracle.Confluent)
		var one tally
		if err := one.run(t, db, st, history); err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v", seed, seed, err)
		}
		total.add(one)
		histories++
	}
	t.Logf("%+v", total)
	if least := histories / 10; total.Damaged < least || total.WentBack < least || total.Replayed < least {
		t.Errorf("recovery was hardly tried: %+v", total)
	}
}

// tally counts what happened.
type tally struct{ Damaged, WentBack, Refused, Replayed int }

func (n *tally) add(o tally) {
	n.Damaged += o.Damaged
	n.WentBack += o.WentBack
	n.Refused += o.Refused
	n.Replayed += o.Replayed
}

func (n *tally) run(
	t *testing.T, db *testenv.Database, st *store.Store, history *oracle.History,
) error {
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(history.Seed, 5))
	generation := register(t, st, fmt.Sprintf("damaged-%d", history.Seed), history.Rule.Version)
	for run := 1; ; run++ {
		// The same configuration each time: another size of epochs may close windows elsewhere.
		same := rand.New(rand.NewPCG(history.Seed, 6))
		stopped, err := runOnce(t, st, generation, history, same, run, nil)
		if errors.Is(err, store.ErrDamaged) {
			n.Refused++
			return nil
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", run, err)
		}
		if !stopped {
			break
		}
		damage := damages[rng.IntN(len(damages))]
		tag, err := db.Pool.Exec(ctx, damage.sql, generation)
		if err != nil {
			return fmt.Errorf("damage %s: %w", damage.table, err)
		}
		n.Damaged += int(min(tag.RowsAffected(), 1))
	}
	report, err := st.Verify(ctx, generation, 0, true)
	switch {
	case err != nil:
		return fmt.Errorf("verify afterwards: %w", err)
	case len(report.Damage) > 0:
		return fmt.Errorf("verify afterwards: %v", report.Damage)
	}
	var diverged int
	err = db.Pool.QueryRow(ctx, `
		select count(*) filter (where kind = 'restore'), count(replays), count(replay_divergence)
		from tally.epoch where generation_id = $1`, generation).
		Scan(&n.WentBack, &n.Replayed, &diverged)
	switch {
	case err != nil:
		return fmt.Errorf("count the replays: %w", err)
	case diverged > 0:
		return fmt.Errorf("%d replays diverged", diverged)
	}
	return equalsBatch(ctx, db, generation, history)
}
