package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFallBackReplaysALargeEpoch damages an epoch that read more of one source, up to its end, than is
// read ahead: its chunks come with fewer tokens than there are chunks.
func TestFallBackReplaysALargeEpoch(t *testing.T) {
	t.Parallel()
	const pairs = 8_000
	p := newProject(t, `name: large
rule: {version: v1, join: inner, before: 2s, after: 2s, lateness: 1s}
left: {source: {type: file, path: left.ndjson}, id: id, key: key, time: time}
right: {source: {type: file, path: right.ndjson}, id: id, key: key, time: time}
epoch: {max_events: 20000}
`)
	lines := func(side string, from, to int) string {
		var b strings.Builder
		for n := from; n < to; n++ {
			at := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Microsecond)
			fmt.Fprintf(&b, `{"id":"%s%d","key":"k%d","time":"%s"}`+"\n", side[:1], n, n,
				at.Format(time.RFC3339Nano))
		}
		return b.String()
	}
	p.append(t, "left.ndjson", lines("left", 0, pairs))
	p.append(t, "right.ndjson", lines("right", 0, 1))
	p.tally(t, "run", "--until-end")
	p.append(t, "right.ndjson", lines("right", 1, pairs))
	p.tally(t, "run", "--until-end")
	p.exec(t, `update tally.buffer set attributes = '{"forged": 1}' where id = 'r99'`)
	p.tally(t, "run", "--until-end")
	p.expect(t, "epochs", `select kind || ' ' || status || ' ' || read || ' ' || coalesce(replays, 0)
		from tally.epoch where epoch > 1 order by epoch`,
		fmt.Sprint("epoch discarded ", pairs-1, " 0"), "restore committed 0 0",
		fmt.Sprint("epoch committed ", pairs-1, " 2"))
	p.expect(t, "pairs", "select count(*)::text from tally.results", fmt.Sprint(pairs))
	p.tally(t, "verify", "--deep")
}
