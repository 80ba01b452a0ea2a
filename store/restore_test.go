package store_test

import (
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// collector keeps the rows that it gets.
type collector struct{ rows []stream.BufferRow }

func (c *collector) load(rows []stream.BufferRow) { c.rows = append(c.rows, rows...) }

// TestRestoreOfWhatWasWritten reads back a shard that nobody touched.
func TestRestoreOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.shard
	for epoch := range int64(7) {
		var found collector
		state, err := h.Restore(t.Context(), store.Quick,
			func(store.State) store.Loader { return found.load })
		if err != nil {
			t.Fatal(err)
		}
		want, err := h.Load(t.Context(), state.Watermark)
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, found.rows, want.Rows...)
		if err := h.CheckRest(t.Context()); err != nil {
			t.Error(err)
		}
		if state.Epoch != epoch || len(state.Damage) != 0 || len(state.Replays) != 0 {
			t.Errorf("restored %+v, want epoch %d", state, epoch)
		}
		report, err := b.Verify(t.Context(), b.generation, 0, false)
		if err != nil || len(report.Damage) != 0 {
			t.Errorf("%v %v", report, err)
		}
		commit(t, h, busyDelta(epoch+1))
		h = b.take(t, b.Store)
	}
}

// standing gives what a restore must bring back: buffer, offsets, watermark and active results,
// without the numbers of epochs that say when it was written, and of the generation.
func (b *bundle) standing(t testing.TB) string {
	t.Helper()
	var text string
	err := b.db.Pool.QueryRow(t.Context(), `select concat_ws(E'\n',
		(select watermark from tally.shard where generation_id = $1 and shard = 0),
		(select string_agg((to_jsonb(x) - array['spilled', 'generation_id', 'row_hash'])::text, E'\n' order by side, id, added_epoch)
		 from tally.buffer x where generation_id = $1 and shard = 0),
		(select string_agg((to_jsonb(x) - array['epoch', 'generation_id'])::text, E'\n' order by side, source, partition)
		 from tally.source_offset x where generation_id = $1 and shard = 0),
		(select string_agg((to_jsonb(x) - array['changed_epoch', 'row_hash', 'generation_id'])::text, E'\n'
			order by match_id)
		 from tally.match x where generation_id = $1 and shard = 0
			and status in ('matched', 'provisional', 'final')))`, b.generation).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (b *bundle) exec(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	tag, err := b.db.Pool.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return tag.RowsAffected()
}

// unloaded verifies a state without reading it.
func unloaded(store.State) store.Loader { return nil }

func restore(t testing.TB, h *store.Shard) store.State {
	t.Helper()
	state, err := h.Restore(t.Context(), store.Thorough, unloaded)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (b *bundle) wantWhole(t testing.TB, deep bool) {
	t.Helper()
	report, err := b.Verify(t.Context(), b.generation, 0, deep)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Damage {
		t.Errorf("verify (deep: %v) finds %s", deep, d)
	}
}

// TestFallBack damages what the newest epochs wrote, and reads them again.
func TestFallBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, damage string
		to           int64
	}{
		{"a buffer row of the newest", "delete from tally.buffer where added_epoch = 6 and id = 'l6'", 5},
		{
			"a buffer row of the one before",
			`update tally.buffer set attributes = '{"amount":"6.11"}' where id = 'r5'`, 4,
		},
		{"an offset", "update tally.source_offset set position = '601'", 6},
		{"the offsets emptied", "delete from tally.source_offset", 6},
		{"the watermark", "update tally.shard set watermark = watermark + interval '1 us'", 6},
		{"a manifest", "update tally.epoch set stale = stale + 1, read = read + 1 where epoch = 5", 4},
		{"a manifest gone", "delete from tally.epoch where epoch = 6", 5},
		{"a result", "update tally.match set key = 'k3' where opened_epoch = 6 and kind = 'pair'", 5},
		{"a transition", "delete from tally.match_transition where epoch = 5 and ordinal = 1", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			want := []string{""}
			for epoch := range int64(6) {
				commit(t, b.shard, busyDelta(epoch+1))
				want = append(want, b.standing(t))
			}
			b.wantWhole(t, true)
			if b.exec(t, c.damage) == 0 {
				t.Fatal("nothing was damaged")
			}
			h := b.take(t, b.Store)
			state := restore(t, h)
			t.Log(state.Damage)
			if state.RestoredTo != c.to || state.Epoch != 7 || len(state.Damage) == 0 {
				t.Errorf("restored %+v, want epoch %d", state, c.to)
			}
			if b.standing(t) != want[c.to] {
				t.Errorf("the state is not that of epoch %d", c.to)
			}
			b.wantWhole(t, false)
			b.wantWhole(t, true)
			b.wantCompensated(t, c.to)
			for i, r := range state.Replays {
				if r.Epoch != c.to+1+int64(i) {
					t.Errorf("replays %+v", state.Replays)
				}
				d := busyDelta(r.Epoch)
				shift(d, 8+int64(i))
				e := h.Encode(d)
				if e.Replays(r.Epoch, r.Output) {
					t.Errorf("the replay of epoch %d diverged", r.Epoch)
				}
				if err := h.Commit(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				b.wantWhole(t, false)
				b.wantWhole(t, true)
			}
		})
	}
}

// wantCompensated fails unless the epochs after the one gone back to are discarded, and what follows
// the history from there to the step back is where the rows are.
func (b *bundle) wantCompensated(t testing.TB, to int64) {
	t.Helper()
	var committed, apart int
	err := b.db.Pool.QueryRow(t.Context(), `select
		(select count(*) from tally.epoch where epoch > $1 and epoch < 7 and status = 'committed'),
		(select count(*) from tally.match m
		 where m.status is distinct from (
			select h.to_status from tally.result_history h
			where h.match_id = encode(m.match_id, 'hex') order by h.epoch desc, h.ordinal desc limit 1))`,
		to).Scan(&committed, &apart)
	if err != nil || committed != 0 || apart != 0 {
		t.Errorf("%d epochs are not discarded, %d results are not where their history ends, %v",
			committed, apart, err)
	}
}

// shift makes a delta of one epoch that of another, which replays it.
func shift(d *stream.Delta, to int64) {
	d.Epoch = to
	for i := range d.Added {
		d.Added[i].AddedEpoch = to
	}
	for _, r := range d.Retired {
		if to > 8 {
			r.AddedEpoch = to - 1
		}
	}
}

// TestQuickStartFindsWhatTheNewestEpochSays damages a transition that seems to go on from one that
// only an older epoch could hold, which a quick start does not read.
func TestQuickStartFindsWhatTheNewestEpochSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for epoch := range int64(6) {
		commit(t, b.shard, busyDelta(epoch+1))
		b.told = append(b.told, b.standing(t))
	}
	b.exec(t, "update tally.match_transition set from_status = 'provisional' "+
		"where epoch = 6 and reason = 'joined'")
	state, err := b.take(t, b.Store).Restore(t.Context(), store.Quick, unloaded)
	if err != nil {
		t.Fatal(err)
	}
	if state.RestoredTo != 5 || len(state.Damage) != 1 {
		t.Errorf("restored %+v, want epoch 5 and one damage", state)
	}
	if b.standing(t) != b.told[4] {
		t.Error("the state is not that of epoch 5")
	}
	b.wantWhole(t, true)
}
