package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/testenv"
)

// TestDiskFull runs on a server whose files may not grow past some megabytes, and an odd number of
// bytes, so that the write that meets the limit is cut short: for Postgres the disk is full then.
// The run pauses, says why, and goes on by itself once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const blocks = 4<<20/512 + 3
	server := testenv.NewPrivate(t, testenv.PrivateOptions{
		Initdb:   []string{"--wal-segsize=1"},
		Settings: []string{"max_wal_size=16MB", "min_wal_size=2MB"},
		Prelude:  fmt.Sprintf("ulimit -S -f %d\n", blocks),
	})
	p := newProjectIn(t, server.DB(t), fmt.Sprintf(liveConfig, "")+
		"epoch: {max_events: 2000, max_delay: 5ms}\n")
	const events = 16000
	for _, side := range []string{"left", "right"} {
		var text strings.Builder
		for n := range events {
			text.WriteString(event(side[:1], n))
		}
		p.append(t, side+".ndjson", text.String())
	}
	var last string
	run := p.live(t)
	p.waitUntil(t, "the disk is full", func() bool {
		now := strings.Join(p.lines(t, "select epoch::text from tally.shard"), "")
		stuck := now != "" && now == last && p.triesRolledBack(t) > 5
		last = now
		return stuck
	})
	stood := p.lines(t, "select epoch::text from tally.shard")
	p.expect(t, "manifests", "select max(epoch)::text from tally.epoch", stood...)
	p.expect(t, "offsets", "select max(epoch)::text from tally.source_offset", stood...)
	lift(t, server)
	p.wantJoinedOnce(t, events)
	run.wantStopped(t, "the server's disk is full, pausing until there is room", "SQLSTATE 53100")
	if strings.Contains(run.stderr, "disk_full=0") {
		t.Errorf("full disks aren't counted:\n%s", run.stderr)
	}
}

// triesRolledBack counts the transactions that failed since the statistics were reset.
func (p *project) triesRolledBack(t *testing.T) (n int) {
	t.Helper()
	row := p.db.Pool.QueryRow(t.Context(), `select xact_rollback from pg_stat_database
		where datname = current_database()`)
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// lift takes the limit from a server's processes; each new one has that of the first.
func lift(t *testing.T, server *testenv.Private) {
	t.Helper()
	first := strconv.Itoa(server.PID(t))
	server.Run(t, "prlimit", "--pid", first, "--fsize=unlimited:")
	for process := range strings.FieldsSeq(server.Run(t, "pgrep", "-P", first)) {
		// One that has ended meanwhile needs no limit lifted.
		server.Run(t, "sh", "-c", "prlimit --pid "+process+" --fsize=unlimited: || :")
	}
}
