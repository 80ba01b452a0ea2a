package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// snapshot takes one of shard 0.
func (b *bundle) snapshot(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	end, err := b.Snapshot(t.Context(), b.generation, 0, &file)
	if err != nil {
		t.Fatal(err)
	}
	if _, epoch, err := b.Stands(t.Context(), b.generation, 0); err != nil || end.Epoch != epoch {
		t.Errorf("the snapshot is of epoch %d, the shard stands at %d (%v)", end.Epoch, epoch, err)
	}
	return file.Bytes()
}

func opening(file []byte) store.OpenSnapshot {
	return func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(file)), nil
	}
}

// outcome is what counts of a shard: the results, and the buffer as of its newest epoch.
func (b *bundle) outcome(t testing.TB) string {
	t.Helper()
	var text string
	err := b.db.Pool.QueryRow(t.Context(), `
		with shard as (select watermark from tally.shard where generation_id = $1 and shard = 0)
		select concat_ws(E'\n',
			(select string_agg(concat_ws(' ', encode(match_id, 'hex'), kind, status, left_id,
				left_revision, right_id, right_revision, key, left_time, right_time, m.horizon,
				verdict, differences), E'\n' order by match_id)
			 from tally.match m where generation_id = $1 and m.shard = 0
				and status in ('matched', 'provisional', 'final')),
			(select string_agg(concat_ws(' ', side, id, revision, b.key, event_time, deleted,
				attributes, b.horizon, source, partition, position), E'\n' order by side, id, revision)
			 from tally.buffer b, shard s where b.generation_id = $1 and b.shard = 0
				and retired_epoch is null and b.horizon >= s.watermark),
			(select string_agg(concat_ws(' ', side, source, partition, position, o.watermark),
				E'\n' order by side, source, partition)
			 from tally.source_offset o where generation_id = $1 and o.shard = 0),
			(select watermark::text from shard))`, b.generation).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mixed gives an epoch that moves results of earlier ones in every way: a pair, an unmatched row
// that gets a partner two epochs later, one that is replaced in the next.
func mixed(epoch int64) *stream.Delta {
	d := busyDelta(epoch)
	waits := func(e int64) stream.BufferRow {
		return row(stream.Left, event(fmt.Sprint("w", e), "k3", 5), 100*tick, e)
	}
	d.Added = append(d.Added, waits(epoch))
	d.Counts.Buffered += epoch
	d.Changes = append(d.Changes, fresh(only(waits(epoch), stream.Provisional), stream.CauseUnmatched))
	d.Counts.ProvisionalOpened++
	if epoch > 2 {
		old := waits(epoch - 2)
		partner := row(stream.Right, event(fmt.Sprint("p", epoch-2), "k3", 5), 100*tick, epoch)
		d.Added = append(d.Added, partner)
		d.Changes = slices.Insert(d.Changes, 0,
			moved(only(old, stream.Provisional), stream.Retracted, stream.CausePartnerArrived))
		d.Changes = append(d.Changes, fresh(pair(old, partner), stream.CauseJoined))
		d.Counts.Retracted++
		d.Counts.Paired++
		d.Counts.Buffered += epoch - 2
	}
	return d
}

// archivedBundle has epochs 1 to 5 in a snapshot, and 6 to 9 after it.
func archivedBundle(t *testing.T) (b *bundle, file []byte, want string) {
	b = setup(t)
	for epoch := range int64(5) {
		commit(t, b.shard, mixed(epoch+1))
	}
	file = b.snapshot(t)
	for epoch := range int64(4) {
		commit(t, b.shard, mixed(epoch+6))
	}
	return b, file, b.outcome(t)
}

// wantReplayed takes the shard as a worker does, reads the discarded epochs again, and compares.
func (b *bundle) wantReplayed(t testing.TB, h *store.Shard, want string) {
	t.Helper()
	state, err := h.Restore(t.Context(), store.Quick, func(store.State) store.Loader { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Damage) > 0 || state.RestoredFrom != 0 {
		t.Fatalf("after the archive the shard does not verify: %v", state.Damage)
	}
	for i, recorded := range state.Replays {
		if recorded.Epoch != int64(i)+6 {
			t.Fatalf("epoch %d is to be read again in place %d", recorded.Epoch, i)
		}
		d := mixed(recorded.Epoch)
		for j := range d.Added {
			d.Added[j].AddedEpoch = state.Epoch + int64(i) + 1
		}
		for _, r := range d.Retired {
			if i > 0 {
				r.AddedEpoch = state.Epoch + int64(i)
			}
		}
		d.Epoch = state.Epoch + int64(i) + 1
		e := h.Encode(d)
		if e.Replays(recorded.Epoch, recorded.Output) {
			t.Errorf("the replay of epoch %d gives other results", recorded.Epoch)
		}
		if err := h.Commit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if len(state.Replays) != 4 {
		t.Errorf("%d epochs are to be read again, want 4", len(state.Replays))
	}
	wantSame(t, b.outcome(t), want)
	report, err := b.Verify(t.Context(), b.generation, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Damage {
		t.Errorf("after the replay: %s", d)
	}
}

// TestArchiveRepairs damages rows in ways that no retained epoch helps against, goes back to the
// archive, replays, and has what an undisturbed run has.
func TestArchiveRepairs(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"nothing":           "select",
		"a buffer row gone": "delete from tally.buffer where id = 'l2'",
		"a buffer row edited": `update tally.buffer set horizon = horizon + interval '1 s'
			where id = 'l2'`,
		"a buffer row too many": `insert into tally.buffer select generation_id, shard, side, 'x',
			revision, key, event_time, deleted, attributes, horizon, source, partition, position,
			added_epoch, retired_epoch, spilled, row_hash from tally.buffer where id = 'l2'`,
		"the buffer empty":        "delete from tally.buffer",
		"a result gone":           "delete from tally.match where left_id = 'l2'",
		"a moved result gone":     "delete from tally.match where left_id = 'w5' and right_id is null",
		"a result edited":         "update tally.match set key = 'other' where left_id = 'l3'",
		"a result's bucket":       "update tally.match set bucket = bucket + 1 where left_id = 'l3'",
		"a newer result's bucket": "update tally.match set bucket = bucket - 1 where left_id = 'l8'",
		"a result's epoch":        "update tally.match set opened_epoch = 1 where left_id = 'l3'",
		"a newer result's status": `update tally.match set status = 'superseded'
			where left_id = 'l8'`,
		"a newer result edited": "update tally.match set key = 'other' where left_id = 'l8'",
		"a moved result edited": `update tally.match set key = 'other'
			where left_id = 'w5' and right_id is null`,
		"a result too many": `insert into tally.match select generation_id, shard,
			bucket, sha256(match_id), kind, status, left_id, left_revision, right_id, right_revision, key,
			left_time, right_time, horizon, verdict, differences, opened_epoch, changed_epoch,
			row_hash from tally.match where left_id = 'l2'`,
		"results gone":         "delete from tally.match",
		"a manifest gone":      "delete from tally.epoch where epoch = 3",
		"a manifest edited":    "update tally.epoch set buffered = buffered + 1 where epoch = 4",
		"offsets gone":         "delete from tally.source_offset",
		"an offset edited":     "update tally.source_offset set position = '1'",
		"the watermark edited": "update tally.shard set watermark = 'infinity'",
		"the epoch set back":   "update tally.shard set epoch = 2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, file, want := archivedBundle(t)
			if _, err := b.db.Pool.Exec(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			h := b.take(t, b.Store)
			from, err := h.RestoreArchive(t.Context(), opening(file), nil)
			if err != nil || from != 5 {
				t.Fatalf("went back to epoch %d (%v), want 5", from, err)
			}
			b.wantPurgedEpoch(t, 10)
			b.wantReplayed(t, h, want)
		})
	}
}

// TestSnapshotRefusesDamage: what is damaged never replaces an older snapshot.
func TestSnapshotRefusesDamage(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{
		"update tally.match set key = 'other' where left_id = 'l3'",
		"update tally.match set status = 'superseded' where left_id = 'l3'",
		"update tally.buffer set key = 'other' where id = 'l3'",
		"update tally.buffer set retired_epoch = 4 where id = 'l3'",
		"delete from tally.buffer where id = 'l3'",
		"update tally.epoch set read = read + 1, accepted = accepted + 1 where epoch = 4",
		"update tally.source_offset set position = '1'",
		"update tally.shard set epoch = 4",
	} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			b, _, _ := archivedBundle(t)
			if _, err := b.db.Pool.Exec(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			_, err := b.Snapshot(t.Context(), b.generation, 0, io.Discard)
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("the snapshot was taken: %v, want ErrDamaged", err)
			}
		})
	}
}

// writes counts what a snapshot has written and calls back after each, so that epochs go on
// meanwhile.
type writes struct {
	bytes.Buffer
	between func()
}

func (w *writes) Write(p []byte) (int, error) {
	if w.between != nil {
		w.between()
	}
	return w.Buffer.Write(p)
}

// TestSnapshotBesideCommits commits epochs while the snapshot is taken; it must be of one epoch.
func TestSnapshotBesideCommits(t *testing.T) {
	t.Parallel()
	for at := range 24 {
		t.Run(fmt.Sprint("before write ", at), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for epoch := range int64(5) {
				commit(t, b.shard, mixed(epoch+1))
			}
			outcomes := map[int64]string{5: b.outcome(t)}
			n, epoch := 0, int64(5)
			w := &writes{between: func() {
				if n++; n > at && n < at+3 {
					epoch++
					commit(t, b.shard, mixed(epoch))
					outcomes[epoch] = b.outcome(t)
				}
			}}
			end, err := b.Snapshot(t.Context(), b.generation, 0, w)
			if err != nil {
				t.Fatal(err)
			}
			h := b.take(t, b.Store)
			from, err := h.RestoreArchive(t.Context(), opening(w.Bytes()), nil)
			if err != nil || from != end.Epoch {
				t.Fatalf("went back to epoch %d (%v), want %d", from, err, end.Epoch)
			}
			wantSame(t, b.outcome(t), outcomes[from])
		})
	}
}

// TestArchiveRefusesOthers: a snapshot cut short anywhere, or of something else, changes nothing.
func TestArchiveRefusesOthers(t *testing.T) {
	t.Parallel()
	b, file, want := archivedBundle(t)
	h := b.take(t, b.Store)
	refused := func(what string, file []byte) {
		_, err := h.RestoreArchive(t.Context(), opening(file), nil)
		if !errors.Is(err, store.ErrSnapshot) {
			t.Errorf("%s: %v, want ErrSnapshot", what, err)
		}
	}
	for cut := 0; cut < len(file); cut += 1 + len(file)/50 {
		refused(fmt.Sprintf("cut after %d of %d bytes", cut, len(file)), file[:cut])
	}
	refused("the last byte cut", file[:len(file)-1])
	for _, c := range [][2]string{
		{`"shard":0`, `"shard":1`},
		{`"reconciliation":"payments"`, `"reconciliation":"others"`},
		{`"rule_version":"v1"`, `"rule_version":"v2"`},
		{`"version":2`, `"version":1`},
		{`{"end":{"epoch":5`, `{"end":{"epoch":4`},
	} {
		if !bytes.Contains(file, []byte(c[0])) {
			t.Fatalf("the snapshot has no %s", c[0])
		}
		refused(c[1], bytes.Replace(file, []byte(c[0]), []byte(c[1]), 1))
	}
	wantSame(t, b.outcome(t), want)
	if _, err := b.take(t, b.Store).RestoreArchive(t.Context(), opening(file), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.RestoreArchive(t.Context(), opening(file), nil); !errors.Is(err, store.ErrFenced) {
		t.Errorf("restored under an old token: %v, want ErrFenced", err)
	}
}

// TestArchiveSurvivesLostConnections cuts the connection at message 0, 1, 2 … until a restore
// runs through uncut.
func TestArchiveSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	for _, when := range []cut{beforeSend, beforeReply, afterReply} {
		t.Run(string(when), func(t *testing.T) {
			t.Parallel()
			b, file, _ := archivedBundle(t)
			commit(t, b.shard, mixed(10))
			var want string
			k := 0
			for struck := true; struck; k++ {
				var f fault
				s := open(t, b.db, f.configure)
				h := b.take(t, s)
				f.arm(when, k, 1, 0)
				if _, err := h.RestoreArchive(t.Context(), opening(file), nil); err != nil {
					t.Fatalf("cut at %d: %v", k, err)
				}
				struck = f.disarm() > 0
				if k == 0 {
					want = b.outcome(t)
				}
				wantSame(t, b.outcome(t), want)
				state, err := h.Restore(t.Context(), store.Quick, func(store.State) store.Loader { return nil })
				if err != nil || len(state.Damage) > 0 || len(state.Replays) != 5 {
					t.Fatalf("cut at %d: %+v %v", k, state, err)
				}
				s.Close()
			}
			if k < 10 {
				t.Errorf("the restore took %d messages, want more", k-1)
			}
		})
	}
}

// TestArchiveSurvivesBeingKilled ends a restore for good around each of its statements: before its
// commit nothing has changed.
func TestArchiveSurvivesBeingKilled(t *testing.T) {
	t.Parallel()
	b, file, before := archivedBundle(t)
	errKilled := errors.New("killed")
	left := 0
	var steps []string
	s, err := store.Open(t.Context(), store.Config{
		ConnString: b.db.URL, Schema: b.db.Schema, MaxConns: 4,
		OnStep: func(_ context.Context, name string, _ bool) error {
			steps = append(steps, name)
			if left--; left < 0 {
				return errKilled
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for k, killed := 0, true; killed; k++ {
		left, steps = k, nil
		h := b.take(t, s)
		_, err := h.RestoreArchive(t.Context(), opening(file), nil)
		if killed = errors.Is(err, errKilled); !killed && err != nil {
			t.Fatal(err)
		}
		sent := slices.Index(steps, "commit")
		if sent >= 0 && sent < len(steps)-1 { // it is told before and after
			state, err := h.Restore(t.Context(), store.Quick, func(store.State) store.Loader { return nil })
			if err != nil || len(state.Damage) > 0 {
				t.Fatalf("killed after the commit: %+v %v", state, err)
			}
			before = b.outcome(t)
			continue
		}
		wantSame(t, b.outcome(t), before)
		if k > 200 {
			t.Fatal("it never ran through")
		}
	}
}
