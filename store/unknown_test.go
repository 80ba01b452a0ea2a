package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// TestAThousandUnknownCommits loses the connection in a thousand commits: before the message is
// sent, before its reply has come, and with the reply there but unread. Each epoch must be there
// once, whichever of these it was.
func TestAThousandUnknownCommits(t *testing.T) {
	t.Parallel()
	const workers, each = 20, 50
	b := setup(t)
	ways := []cut{beforeSend, beforeReply, afterReply}
	var resolved, reacquired atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d commits lost, %d shards acquired again, %d commits found done",
			workers*each, reacquired.Load(), resolved.Load())
		if reacquired.Load() < workers*each || resolved.Load() == 0 ||
			resolved.Load() == reacquired.Load() {
			t.Error("the outcomes were not of both kinds")
		}
	})
	for worker := range workers {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			var f fault
			s := open(t, b.db, f.configure)
			own := &bundle{Store: s, db: b.db}
			own.generation = own.register(t, t.Name(), 1)
			h := own.take(t, s)
			commit(t, h, delta(1)) // so that a connection is open
			for n := range each {
				epoch := int64(n + 2)
				f.arm(ways[(worker+n)%len(ways)], 0, 1, 0)
				commit(t, h, delta(epoch))
				if f.disarm() != 1 {
					t.Fatalf("epoch %d: the connection was not cut", epoch)
				}
			}
			stats := h.Stats()
			resolved.Add(stats.Resolved)
			reacquired.Add(stats.Reacquired)
			wantEpochs(t, own, each+1)
		})
	}
}

// wantEpochs compares the manifests with the epochs up to the newest, each once.
func wantEpochs(t *testing.T, b *bundle, newest int64) {
	t.Helper()
	var count, last, stands int64
	err := b.db.Pool.QueryRow(t.Context(), `
		select count(*), max(e.epoch), max(s.epoch)
		from tally.epoch e join tally.shard s using (generation_id, shard)
		where e.generation_id = $1`, b.generation).Scan(&count, &last, &stands)
	if err != nil {
		t.Fatal(err)
	}
	if count != newest || last != newest || stands != newest {
		t.Errorf("%d manifests up to epoch %d, the shard at %d; want %d", count, last, stands, newest)
	}
}
