package main

import (
	"strings"
	"testing"
)

// TestRebuildOfSealedSources: one is compressed and can't be followed, one ends without a newline.
// What comes after the seal is a correction, whatever its time.
func TestRebuildOfSealedSources(t *testing.T) {
	t.Parallel()
	l := newLedger(t, strings.Replace(ledgerConfig, "{type: file, path: left.ndjson}",
		"[{type: file, path: left.ndjson}, {type: file, path: old.ndjson.gz}]", 1))
	var old strings.Builder
	for n := range 5 {
		old.WriteString(plain("l", n).line())
		l.facts = append(l.facts, plain("l", n))
	}
	l.appendGzip(t, "old.ndjson.gz", old.String())
	l.fill(t, 5, 20)
	l.add(t, plain("r", 1), plain("r", 2))
	last := plain("r", 3)
	l.append(t, "right.ndjson", strings.TrimSpace(last.line()))
	l.facts = append(l.facts, last)
	l.tally(t, "run", "--until-end", "--seal")
	l.equalsOracle(t, "sealed")

	for _, args := range [][]string{
		{"rebuild", "--auto"},
		{"rebuild", "--auto", "--from", "2026-01-10T12:00:00Z", "--to", "2026-01-10T13:00:00Z"},
	} {
		l.prints(t, exitDone, []string{": 0 changes, 0 corrections resolved"}, args...)
		l.equalsOracle(t, "rebuilt without need")
		l.verifies(t)
	}
	l.add(t, plain("l", 50), revised(plain("l", 6), func(f *fact) { f.gone = true }))
	l.tally(t, "run", "--until-end", "--seal")
	l.expect(t, "after the seal", "select id || ' ' || status from tally.corrections", "l50 open",
		"l6 open")
	l.prints(t, exitDone, []string{"2 corrections resolved"}, "rebuild", "--auto", "--corrections")
	l.equalsOracle(t, "in the end")
	l.verifies(t)
}
