package store_test

import "testing"

// TestAttemptsTellWhatEachDid reads back two runs over a shard: what each went on from and left.
func TestAttemptsTellWhatEachDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	commit(t, b.shard, busyDelta(1), busyDelta(2))
	if err := b.shard.Leave(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	second := b.take(t, b.Store)
	commit(t, second, busyDelta(3))
	rows, err := b.db.Pool.Query(t.Context(), `
		select a.from_epoch, a.first_epoch, a.last_epoch, a.epochs, coalesce(a.outcome, 'runs'),
			a.identities, a.provisional_withdrawn, a.sources -> 0 ->> 'to' as position,
			a.digest = e.digest and a.buffer_digest = e.buffer_digest as digests
		from tally.attempts a join tally.epochs e on e.shard = a.shard and e.epoch = a.last_epoch
		where a.shard = 0 order by a.from_epoch`)
	if err != nil {
		t.Fatal(err)
	}
	type attempt struct {
		from, first, last, epochs int64
		outcome                   string
		identities, withdrawn     int64
		position                  string
		digests                   bool
	}
	var got []attempt
	for rows.Next() {
		var a attempt
		if err := rows.Scan(&a.from, &a.first, &a.last, &a.epochs, &a.outcome, &a.identities,
			&a.withdrawn, &a.position, &a.digests); err != nil {
			t.Fatal(err)
		}
		got = append(got, a)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := []attempt{
		{0, 1, 2, 2, "done", 4, 1, "200", true},
		{2, 3, 3, 1, "runs", 3, 1, "300", true},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("attempts %+v, want %+v", got, want)
	}
}
