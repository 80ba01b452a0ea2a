package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestManyRowsExpireAtOnce stops after many unmatched rows and goes on a day later: they close over
// several epochs of bounded size, and new events are joined before the last of them is closed.
func TestManyRowsExpireAtOnce(t *testing.T) {
	t.Parallel()
	rows, perEpoch := rounds(30_000, 5_000_000), 500
	p := newProject(t, fmt.Sprintf(liveConfig, "")+
		fmt.Sprintf("epoch: {max_events: %d, max_delay: 5ms}\n", perEpoch))
	start := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	line := func(id string, at time.Time) string {
		return fmt.Sprintf(`{"id":%q,"rev":1,"key":%q,"time":%q}`+"\n", id, id[1:],
			at.Format(time.RFC3339Nano))
	}
	var text strings.Builder
	for n := range rows {
		text.WriteString(line(fmt.Sprintf("l%d", n), start.Add(time.Duration(n)*time.Microsecond)))
	}
	p.append(t, "left.ndjson", text.String())
	p.append(t, "right.ndjson", line("rfirst", start))
	p.tally(t, "run", "--until-end")
	p.expect(t, "rows that wait", "select count(*)::text from tally.buffer", fmt.Sprint(rows+1))

	later := start.Add(24 * time.Hour)
	run := p.live(t)
	p.append(t, "left.ndjson", line("l0-later", later))
	p.append(t, "right.ndjson", line("r0-later", later))
	for n := 1; n <= 20; n++ {
		key := fmt.Sprintf("%d-later", n)
		at := later.Add(time.Duration(n) * time.Second)
		p.append(t, "left.ndjson", line("l"+key, at))
		p.append(t, "right.ndjson", line("r"+key, at))
	}
	p.waitFor(t, "every row is closed", `select status || ' ' || count(*) from tally.results
		group by status`, fmt.Sprintf("final %d", rows+1), "matched 21")
	run.wantStopped(t)
	p.expect(t, "epochs of bounded size", `select (max(final) <= 10000) || ' ' || (count(*) > 2)
		from tally.epoch where final > 0`, "true true")
	p.expect(t, "new events do not wait for old rows", `select distinct 'joined before' from tally.epoch
		where paired > 0 and epoch < (select max(epoch) from tally.epoch where final > 0)`,
		"joined before")
	p.expect(t, "rows made final twice", `select match_id::text from tally.match_transition
		where to_status = 'final' group by 1 having count(*) > 1`)
}

// TestOneHotKey joins every left with every right event of one key, over several epochs, while other
// keys go on; past max_pairs_per_key events of the key are set aside.
func TestOneHotKey(t *testing.T) {
	t.Parallel()
	side := rounds(200, 1000)
	for name, c := range map[string]struct {
		limit, pairs int
	}{
		"within the limit": {side * side, side * side},
		"past the limit":   {side * 10, side * 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, fmt.Sprintf(liveConfig, "")+fmt.Sprintf(
				"epoch: {max_events: 1000}\nlimits: {max_pairs_per_key: %d}\n", c.limit))
			for _, s := range []string{"l", "r"} {
				var text strings.Builder
				for n := range side {
					fmt.Fprintf(&text, `{"id":"%sh%d","rev":1,"key":"hot","time":"2026-01-10T12:00:00Z"}`+
						"\n%s", s, n, event(s, n%4))
				}
				p.append(t, map[string]string{"l": "left", "r": "right"}[s]+".ndjson", text.String())
			}
			p.tally(t, "run", "--until-end")
			p.expect(t, "pairs of the hot key", `select count(*)::text from tally.results
				where kind = 'pair' and key = 'hot'`, fmt.Sprint(c.pairs))
			p.expect(t, "pairs of other keys", `select count(*)::text from tally.results
				where kind = 'pair' and key <> 'hot'`, "4")
			p.expect(t, "pairs of an epoch, bounded", `select 'too many' from tally.epoch
				where paired > 10000`)
			p.expect(t, "set aside", `select distinct reason from tally.quarantined`,
				map[bool][]string{true: {"hot_key"}}[c.limit < side*side]...)
		})
	}
}
