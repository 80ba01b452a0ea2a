package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// purgeRows is how many rows of each kind an epoch of these tests adds; they fill several steps.
const purgeRows = 30

// passing gives an epoch after which, in the epochs to come, all it adds leaves the buffer: half by
// horizon three epochs later, half replaced in the next.
func passing(epoch int64) *stream.Delta {
	d := delta(epoch)
	for i := range purgeRows {
		d.Added = append(d.Added, expiring(epoch, i), replaced(epoch, i))
		if epoch > 1 {
			old := replaced(epoch-1, i)
			d.Retired = append(d.Retired, &old)
		}
		if epoch > 3 {
			old := expiring(epoch-3, i)
			d.Expired = append(d.Expired, &old)
		}
	}
	d.Counts = stream.Counts{
		Read: 2 * purgeRows, Accepted: 2 * purgeRows, Expired: int64(len(d.Expired)),
		Buffered: purgeRows * (min(epoch, 3) + 1),
	}
	return d
}

func expiring(epoch int64, i int) stream.BufferRow {
	e := event(fmt.Sprintf("e%d-%d", epoch, i), "k1", 5)
	e.Attributes = `{"filler":"` + strings.Repeat(fmt.Sprint(i%10), 1500) + `"}`
	return row(stream.Left, e, stream.Micros(epoch+2)*tick, epoch)
}

func replaced(epoch int64, i int) stream.BufferRow {
	e := event(fmt.Sprintf("r%d", i), "k2", 5)
	e.Revision = epoch
	return row(stream.Right, e, 100_000*tick, epoch)
}

// purge runs a purge to its end and gives how many rows went. It is nil when there was nothing.
func (b *bundle) purge(
	t testing.TB, s *store.Store, retain store.Retention,
) (gone int64, steps int) {
	t.Helper()
	p, err := s.Purge(t.Context(), b.generation, 0, retain)
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		return 0, 0
	}
	may, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for more := may; more; steps++ {
		var deleted int64
		if deleted, more, err = p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone += deleted
	}
	return gone, steps
}

// wantRestorable checks that the rows of a shard give the buffer digest of each epoch from oldest
// on, and that no other row is left when all that can go is gone.
func (b *bundle) wantRestorable(t testing.TB, generation, shard int32, oldest int64, all bool) {
	t.Helper()
	rows, err := b.db.Pool.Query(t.Context(), `
		with live as (
			select e.epoch, b.ctid as place,
				('x' || encode(substr(b.row_hash, 1, 8), 'hex'))::bit(64)::bigint::numeric as high,
				('x' || encode(substr(b.row_hash, 9, 8), 'hex'))::bit(64)::bigint::numeric as low
			from tally.epoch e join tally.buffer b using (generation_id, shard)
			where generation_id = $1 and shard = $2 and e.epoch >= $3 and e.status = 'committed'
				and b.added_epoch <= e.epoch and b.horizon >= e.watermark_after
				and (b.retired_epoch is null or b.retired_epoch > e.epoch)
		), sums as (
			select epoch, mod(mod(sum(high), 2 ^ 64::numeric) + 2 ^ 64::numeric, 2 ^ 64::numeric) as high,
				mod(mod(sum(low), 2 ^ 64::numeric) + 2 ^ 64::numeric, 2 ^ 64::numeric) as low
			from live group by epoch
		), recorded as (
			select epoch,
				mod(('x' || encode(substr(buffer_digest, 1, 8), 'hex'))::bit(64)::bigint::numeric
					+ 2 ^ 64::numeric, 2 ^ 64::numeric) as high,
				mod(('x' || encode(substr(buffer_digest, 9, 8), 'hex'))::bit(64)::bigint::numeric
					+ 2 ^ 64::numeric, 2 ^ 64::numeric) as low
			from tally.epoch
			where generation_id = $1 and shard = $2 and epoch >= $3 and status = 'committed'
		)
		select r.epoch::text from recorded r left join sums s using (epoch)
		where (coalesce(s.high, 0), coalesce(s.low, 0)) is distinct from (r.high, r.low)
		union all
		select 'row ' || b.id || ' of epoch ' || b.added_epoch from tally.buffer b
		where $4 and b.generation_id = $1 and b.shard = $2
			and b.ctid not in (select place from live)`, generation, shard, oldest, all)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			t.Fatal(err)
		}
		wrong = append(wrong, what)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(wrong) > 0 {
		t.Errorf("shard %d purged behind epoch %d: digests that differ, rows that are left: %v", shard,
			oldest, wrong[:min(len(wrong), 10)])
	}
}

func (b *bundle) wantPurgedEpoch(t testing.TB, want int64) {
	t.Helper()
	got, err := b.OldestRestorable(t.Context(), b.generation, 0)
	if err != nil || got != want {
		t.Errorf("the oldest restorable epoch is %d (%v), want %d", got, err, want)
	}
}

func TestPurgeKeepsWhatRetainedEpochsNeed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, err := b.Take(t.Context(), b.generation, 1, "host/2")
	if err != nil {
		t.Fatal(err)
	}
	for epoch := range int64(12) {
		commit(t, b.shard, passing(epoch+1))
		commit(t, other, passing(epoch+1))
	}
	b.wantRestorable(t, b.generation, 0, 1, false)
	day := store.Retention{Epochs: 4, For: 24 * time.Hour}
	gone, steps := b.purge(t, b.Store, day)
	// What 1 to 6 added by horizon and 1 to 8 to be replaced; epoch 9 has the watermark 9.
	if want := int64(purgeRows * (6 + 8)); gone != want || steps < 3 {
		t.Errorf("%d rows went in %d steps, want %d in several", gone, steps, want)
	}
	b.wantPurgedEpoch(t, 9)
	b.wantRestorable(t, b.generation, 0, 9, true)
	b.wantRestorable(t, b.generation, 1, 1, false)
	if gone, _ := b.purge(t, b.Store, day); gone != 0 {
		t.Errorf("a second purge deleted %d rows", gone)
	}
	b.purge(t, b.Store, store.Retention{Epochs: 1, For: 0})
	b.wantPurgedEpoch(t, 11)
	b.wantRestorable(t, b.generation, 0, 11, true)
	b.purge(t, b.Store, day)
	b.wantPurgedEpoch(t, 11)
	report, err := b.Verify(t.Context(), b.generation, 0, true)
	if err != nil || len(report.Damage) > 0 {
		t.Errorf("verify after purging: %v %v", report.Damage, err)
	}
}

func TestPurgeOfAShardWithoutHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for epoch := range int64(3) {
		if gone, _ := b.purge(t, b.Store, store.Retention{}); gone != 0 {
			t.Errorf("%d rows went after epoch %d", gone, epoch)
		}
		b.wantRestorable(t, b.generation, 0, max(epoch-1, 0), false)
		commit(t, b.shard, passing(epoch+1))
	}
	if _, err := b.OldestRestorable(t.Context(), b.generation, 7); !errors.Is(err, store.ErrNoShard) {
		t.Errorf("a shard that is not there: %v, want ErrNoShard", err)
	}
}

// TestPurgeByAge pauses between two epochs and puts the bound in the middle of the pause.
func TestPurgeByAge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for epoch := range int64(9) {
		if epoch == 5 {
			if _, err := b.db.Pool.Exec(t.Context(), "select pg_sleep(0.6)"); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, b.shard, passing(epoch+1))
	}
	var micros int64
	err := b.db.Pool.QueryRow(t.Context(), `select (extract(epoch from clock_timestamp()
		- (max(committed_at) filter (where epoch = 6)) + interval '300 ms') * 1000000)::bigint
		from tally.epoch`).Scan(&micros)
	if err != nil {
		t.Fatal(err)
	}
	b.purge(t, b.Store, store.Retention{Epochs: 100, For: time.Duration(micros) * time.Microsecond})
	b.wantPurgedEpoch(t, 6)
	b.wantRestorable(t, b.generation, 0, 6, true)
	b.purge(t, b.Store, store.Retention{Epochs: 3, For: time.Hour})
	b.wantPurgedEpoch(t, 7)
}

// TestPurgeBesideCommits commits an epoch between any two steps.
func TestPurgeBesideCommits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	epoch := int64(0)
	advance := func() {
		epoch++
		commit(t, b.shard, passing(epoch))
	}
	for range 10 {
		advance()
	}
	p, err := b.Purge(t.Context(), b.generation, 0, store.Retention{Epochs: 3, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	advance()
	for more, err := p.Begin(t.Context()); more; _, more, err = p.Step(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		advance()
		b.wantRestorable(t, b.generation, 0, 8, false)
	}
	b.wantPurgedEpoch(t, 8)
}

// TestPurgeStopsForOthers: a discarded oldest epoch, and a shard that was purged behind another.
func TestPurgeStopsForOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for epoch := range int64(9) {
		commit(t, b.shard, passing(epoch+1))
	}
	begun := func(retain int) (*store.Purge, bool) {
		p, err := b.Purge(t.Context(), b.generation, 0, store.Retention{Epochs: retain, For: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		may, err := p.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p, may
	}
	exec := func(sql string) {
		if _, err := b.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	p, may := begun(4)
	if !may {
		t.Fatal("the purge may not begin")
	}
	later, may := begun(3)
	if !may {
		t.Fatal("the later purge may not begin")
	}
	if gone, more, err := p.Step(t.Context()); gone != 0 || more || err != nil {
		t.Errorf("a purge that another has overtaken: %d rows, more %v, %v", gone, more, err)
	}
	if _, more, err := later.Step(t.Context()); !more || err != nil {
		t.Errorf("the purge that overtook it: more %v, %v", more, err)
	}
	if again, err := p.Begin(t.Context()); again || err != nil {
		t.Errorf("a purge began behind an epoch that another is past: %v", err)
	}
	p, err := b.Purge(t.Context(), b.generation, 0, store.Retention{Epochs: 2, For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	exec("update tally.epoch set status = 'discarded' where epoch >= 8")
	if may, err := p.Begin(t.Context()); may || err != nil {
		t.Errorf("a purge began behind a discarded epoch: %v", err)
	}
	exec("update tally.epoch set watermark_after = 'infinity' where epoch = 6")
	_, err = b.Purge(t.Context(), b.generation, 0, store.Retention{Epochs: 2, For: time.Hour})
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("purge by an edited manifest: %v, want ErrDamaged", err)
	}
}

// TestPurgeSurvivesLostConnections cuts the connection at message 0, 1, 2 … until a purge runs
// through uncut.
func TestPurgeSurvivesLostConnections(t *testing.T) {
	t.Parallel()
	for _, when := range []cut{beforeSend, beforeReply, afterReply} {
		t.Run(string(when), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for epoch := range int64(6) {
				commit(t, b.shard, passing(epoch+1))
			}
			var f fault
			s := open(t, b.db, f.configure)
			k := 0
			for struck := true; struck; k++ {
				epoch := int64(7 + k)
				commit(t, b.shard, passing(epoch))
				f.arm(when, k, 1, 0)
				b.purge(t, s, store.Retention{Epochs: 3, For: time.Hour})
				struck = f.disarm() > 0
				b.wantPurgedEpoch(t, epoch-2)
				b.wantRestorable(t, b.generation, 0, epoch-2, true)
			}
			if k < 5 {
				t.Errorf("the purge took %d messages, want several", k-1)
			}
		})
	}
}

// TestPurgeSurvivesBeingKilled ends a purge for good around each of its statements.
func TestPurgeSurvivesBeingKilled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	errKilled := errors.New("killed")
	left := 0
	s, err := store.Open(t.Context(), store.Config{
		ConnString: b.db.URL, Schema: b.db.Schema, MaxConns: 2,
		OnStep: func(context.Context, string, bool) error {
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
	epoch, killed := int64(0), true
	for range 3 {
		epoch++
		commit(t, b.shard, passing(epoch))
	}
	p, err := s.Purge(t.Context(), b.generation, 0, store.Retention{Epochs: 3, For: time.Hour})
	if err != nil || p != nil {
		t.Fatalf("a purge of what was never purged and has no dead rows: %+v, %v, want none", p, err)
	}
	for k := 0; killed; k++ {
		for range 3 {
			epoch++
			commit(t, b.shard, passing(epoch))
		}
		left = k
		killed = errors.Is(purgeOnce(t, s, b.generation), errKilled)
		oldest, err := b.OldestRestorable(t.Context(), b.generation, 0)
		if err != nil {
			t.Fatal(err)
		}
		if oldest > 0 && oldest != epoch-2 && !killed {
			t.Errorf("purged behind %d, want %d", oldest, epoch-2)
		}
		b.wantRestorable(t, b.generation, 0, max(oldest, 1), !killed)
		if k > 200 {
			t.Fatal("it never ran through")
		}
	}
}

func purgeOnce(t *testing.T, s *store.Store, generation int32) error {
	p, err := s.Purge(t.Context(), generation, 0, store.Retention{Epochs: 3, For: time.Hour})
	if err != nil {
		return err
	}
	for more, err := p.Begin(t.Context()); ; _, more, err = p.Step(t.Context()) {
		if err != nil || !more {
			return err
		}
	}
}
