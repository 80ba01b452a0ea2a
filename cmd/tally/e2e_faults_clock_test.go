package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tallystick/tallystick/testenv"
)

// TestClocksDiffer has a server whose clock is an hour off that of the worker, either way. The
// server's decides: what is too far ahead, what is recorded, how long a lease lasts.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		t.Fatalf("no libfaketime (%v): on Debian, apt-get install libfaketime", err)
	}
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			server := testenv.NewPrivate(t, testenv.PrivateOptions{Prelude: fmt.Sprintf(
				"export LD_PRELOAD=%s FAKETIME=%+d FAKETIME_DONT_FAKE_MONOTONIC=1\n",
				libraries[0], int(ahead.Seconds()))})
			p := newProjectIn(t, server.DB(t), fmt.Sprintf(liveConfig, ", idle_after: 30m")+
				"limits: {max_ahead: 30m, max_skew: 10m}\nlease_for: 2s\n")
			now := p.serverTime(t)
			if off := time.Until(now) - ahead; off.Abs() > time.Minute {
				t.Fatalf("the server's clock is %s off what it should be", off)
			}
			line := func(id string, at time.Time) string {
				return fmt.Sprintf(`{"id":%q,"rev":1,"key":"k","time":%q}`+"\n", id,
					at.Format(time.RFC3339Nano))
			}
			p.append(t, "left.ndjson", line("now", now)+line("ahead", now.Add(20*time.Minute))+
				line("far", now.Add(40*time.Minute)))
			p.append(t, "right.ndjson", line("now", now))
			run := p.live(t)
			p.waitFor(t, "pairs", activeRows, "matched now/1 now/1")
			time.Sleep(3 * time.Second) // longer than a lease
			p.append(t, "right.ndjson", line("later", now.Add(time.Second)))
			p.waitFor(t, "pairs", activeRows, "matched now/1 now/1", "matched now/1 later/1")
			run.wantStopped(t)
			p.expect(t, "set aside", "select reason from tally.quarantined", "far_future")
			p.expect(t, "the watermark", "select (watermark <= '"+now.Format(time.RFC3339Nano)+
				"')::text from tally.shard", "true")
			p.expect(t, "attempts", "select outcome from tally.attempt", "stopped")
			p.expect(t, "clocks", `select distinct (abs(extract(epoch from clock - clock_timestamp())) < 600)
				::text from tally.epoch`, "true")
		})
	}
}

func (p *project) serverTime(t *testing.T) (now time.Time) {
	t.Helper()
	if err := p.db.Pool.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now.UTC()
}
