package join_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// base is 0:00 of every script.
var base = stream.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// report says what an epoch changes: the watermark, the results in the order of their transitions,
// what was set aside, who stopped or took up holding the watermark, and the counts that are not 0.
func (s *script) report(d *stream.Delta) string {
	var out strings.Builder
	fmt.Fprintf(&out, "W %s -> %s", clockTime(d.WatermarkBefore), clockTime(d.WatermarkAfter))
	if s.state.Behind() {
		out.WriteString(" behind")
	}
	out.WriteString("\n")
	for _, c := range d.Changes {
		sign := "-"
		if c.Status.Active() {
			sign = "+"
		}
		fmt.Fprintf(&out, "%s %s %s %s (%s)\n", sign, c.Status, name(c.Left), name(c.Right), c.Cause)
	}
	for _, c := range d.Corrections {
		fmt.Fprintf(&out, "correction %s %s/%d %s %s..%s\n", c.Side, c.ID, c.Revision, c.Reason,
			clockTime(c.From), clockTime(c.To))
	}
	for _, q := range d.Quarantined {
		fmt.Fprintf(&out, "quarantined %s.%d@%s %s\n", q.Side, q.Number, q.Position, q.Reason)
	}
	for _, p := range d.Progress {
		if p.Idle != s.idle[p.Partition] {
			s.idle[p.Partition] = p.Idle
			fmt.Fprintf(&out, "%s.%d idle=%t\n", p.Side, p.Number, p.Idle)
		}
	}
	out.WriteString(counts(d.Counts))
	fmt.Fprintf(&out, "buffered %d, held %d\n", d.Counts.Buffered, s.state.Held())
	return out.String()
}

// counts gives the fates of what was read; the counts of transitions are checked against them.
func counts(c stream.Counts) string {
	var parts []string
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"accepted", c.Accepted},
		{"duplicate", c.Duplicate},
		{"stale", c.Stale},
		{"late", c.Late},
		{"quarantined", c.Quarantined},
		{"out_of_shard", c.OutOfShard},
		{"ahead", c.Ahead},
		{"expired", c.Expired},
	} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", n.name, n.n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "counts " + strings.Join(parts, " ") + "\n"
}

// inOrder tells whether withdrawals come before publications, each ordered by identity.
func inOrder(changes []stream.Change) bool {
	return slices.IsSortedFunc(changes, func(a, b stream.Change) int {
		switch {
		case !a.Status.Active() && b.Status.Active():
			return -1
		case a.Status.Active() && !b.Status.Active():
			return 1
		}
		return bytes.Compare(a.MatchID[:], b.MatchID[:])
	})
}

// asked gives what an epoch looked up, or that it looked up nothing.
func asked(n stream.Needs) string {
	if n.Empty() {
		return "asks nothing\n"
	}
	var due []string
	for _, r := range n.Due {
		due = append(due, clockTime(r.From)+".."+clockTime(r.To))
	}
	line := fmt.Sprintf("asks left %v, right %v, keys %v, due %v",
		n.IDs[stream.Left], n.IDs[stream.Right], n.Keys, due)
	if results := n.Results; len(results[stream.Left])+len(results[stream.Right]) > 0 {
		line += fmt.Sprintf(", results of left %v, right %v", results[stream.Left], results[stream.Right])
	}
	return line + "\n"
}

// clockTime is the inverse of minutes; it knows the infinities.
func clockTime(m stream.Micros) string {
	if !m.Finite() {
		return strings.Replace(m.String(), "infinity", "inf", 1)
	}
	micros, sign := int64(m-base), ""
	if micros < 0 {
		micros, sign = -micros, "-"
	}
	text := fmt.Sprintf("%s%d:%02d", sign, micros/60e6, micros/1e6%60)
	if fraction := micros % 1e6; fraction > 0 {
		text += fmt.Sprintf(".%06d", fraction)
	}
	return text
}

// minutes reads minutes:seconds after base, with up to six decimals.
func minutes(t *testing.T, text string) stream.Micros {
	t.Helper()
	front, seconds, _ := strings.Cut(text, ":")
	whole, err := strconv.Atoi(front)
	if err != nil {
		t.Fatalf("time %q: want minutes:seconds", text)
	}
	return base.Add(time.Duration(whole)*time.Minute + duration(t, seconds+"s"))
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
