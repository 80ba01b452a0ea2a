package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// rowsOutside gives the rows of the base that no interval from minute a to b can touch.
func (l *ledger) rowsOutside(t *testing.T, a, b int) []string {
	t.Helper()
	return l.lines(t, `select m::text from tally.match m where generation_id = 1 and
		(coalesce(greatest(left_time, right_time), left_time, right_time) < $1
		or coalesce(least(left_time, right_time), left_time, right_time) >= $2)`,
		atMinute(a), atMinute(b))
}

// TestRebuildOfCorrectionsLeavesTheRestAlone: rows outside the interval stay as they are, to the byte.
func TestRebuildOfCorrectionsLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	l.settled(t)
	// Corrections are of the minutes 3 to 41; their window reaches to -7 and 51.
	before := l.rowsOutside(t, -7, 52)
	if len(before) < 8 {
		t.Fatalf("only %d rows are outside", len(before))
	}
	l.prints(t, exitDone, []string{
		"over the event times from 2026-01-10T12:03:00Z to 2026-01-10T12:41:00.000001Z",
		"generation 2 is merged into 1 since epoch", "9 changes, 4 corrections resolved",
	}, "rebuild", "--auto", "--corrections")
	l.equalsOracle(t, "after the merge")
	if after := l.rowsOutside(t, -7, 52); !slices.Equal(before, after) {
		t.Errorf("rows outside the interval changed:\n%s", strings.Join(difference(after, before), "\n"))
	}
	l.expect(t, "resolved", "select distinct concat_ws(' ', status, resolved_by) from tally.corrections",
		"resolved 2")
	l.expect(t, "history", rebuilt, rebuiltRows...)
	l.verifies(t)
	l.fill(t, 201, 230)
	l.close(t, 400)
	l.tally(t, "run", "--until-end")
	l.equalsOracle(t, "after more live work")
	l.verifies(t)
	l.prints(t, exitDone, []string{"no open correction to settle"}, "rebuild", "--auto", "--corrections")
}

// TestRebuildOfAnIntervalReadsWhatConcernsIt: of a table only that, and of a file no more is given.
func TestRebuildOfAnIntervalReadsWhatConcernsIt(t *testing.T) {
	t.Parallel()
	const config = `name: range
rule: {version: v1, join: full, before: 10m, after: 10m, lateness: 5m}
left: {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time}
right:
  {source: {type: postgres, table: public.signals, cursor: seq, transaction: txid}, id: id,
    revision: rev, key: key, time: time}
`
	p := newProject(t, config)
	if _, err := p.db.Pool.Exec(t.Context(), signalsTable); err != nil {
		t.Fatal(err)
	}
	const all = 400
	for n := range all {
		p.append(t, "left.ndjson", event("l", n))
	}
	if _, err := p.db.Pool.Exec(t.Context(), `insert into public.signals (id, rev, key, time)
		select 'r' || n, 1, 'k' || n, '2026-01-10 12:00Z'::timestamptz + make_interval(mins => n)
		from generate_series(0, $1 - 1) n where n <> 50`, all); err != nil {
		t.Fatal(err)
	}
	p.tally(t, "run", "--until-end")
	p.expect(t, "one is alone", "select left_id from tally.results where status = 'final'", "l50")
	p.signal(t, 50)
	p.tally(t, "run", "--until-end")
	code, stdout, stderr := p.execute(t, "--log-level", "info", "--log-format", "json",
		"rebuild", "--auto", "--corrections")
	if code != exitDone {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	p.expect(t, "it is settled", `select concat_ws(' ', status, right_id) from tally.results
		where left_id = 'l50'`, "matched r50")
	// The range is that of minute 50 and, of the window twice, of what its partners may meet.
	readings := map[string]string{}
	for line := range strings.Lines(stderr) {
		var said struct {
			Msg, Source string
			Read        int `json:"records_read"`
			Given       int `json:"records_given"`
		}
		if err := json.Unmarshal([]byte(line), &said); err == nil &&
			said.Msg == "read what concerns the interval" {
			readings[said.Source] = fmt.Sprint(said.Read, " read, ", said.Given, " given")
		}
	}
	want := map[string]string{
		"left/left.ndjson/0": "400 read, 41 given", "right/public.signals/0": "41 read, 41 given",
	}
	if !maps.Equal(readings, want) {
		t.Errorf("readings are %q, want %q", readings, want)
	}
}

func TestRebuildRefusesIntervals(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	l.fill(t, 0, 60)
	l.close(t, 90)
	l.tally(t, "run", "--until-end")
	interval := func(from, to string) []string {
		return []string{"rebuild", "start", "--from", from, "--to", to}
	}
	const hour = "2026-01-10T12:00:00Z"
	l.refused(t, exitUsage, []string{
		"live work can still change results of the interval",
		"the watermark (2026-01-10T13:30:00Z) must pass 2026-01-10T13:36:00Z first",
	}, interval(hour, "2026-01-10T13:01:00Z")...)
	for _, c := range []struct {
		says string
		args []string
	}{
		{`--from "yesterday": want a time such as`, interval("yesterday", hour)},
		{`--to "": want a time such as`, []string{"rebuild", "start", "--from", hour}},
		{`--from "": want a time such as`, []string{"rebuild", "start", "--to", hour}},
		{`--to "2026-01-10 13:00": want a time such as`, interval(hour, "2026-01-10 13:00")},
		{"--to must be after --from", interval(hour, hour)},
		{"--corrections finds the interval itself", append(interval(hour, hour), "--corrections")},
		{"unknown flag", []string{"rebuild", "start", "--until", hour}},
		{"say a step", []string{"rebuild"}},
		{"unknown command", []string{"rebuild", "begin"}},
	} {
		l.refused(t, exitUsage, []string{c.says}, c.args...)
	}
	l.expect(t, "nothing was begun", "select generation_id || '' from tally.generation", "1")
	l.prints(t, exitDone, []string{"generation 2 is a candidate"},
		interval(hour, "2026-01-10T12:55:00Z")...)
	l.prints(t, exitDone, nil, "rebuild", "run")
	l.prints(t, exitDone, []string{"0 only in the candidate, 0 only in what serves", "passed"},
		"rebuild", "validate")
	l.prints(t, exitDone, []string{"0 changes, 0 corrections resolved"}, "rebuild", "promote")
	l.equalsOracle(t, "after an interval in which nothing differs")
	l.verifies(t)
}

// TestRebuildOfAnIntervalLeavesWhatIsNear: a late event beside the interval stays open, although it
// would meet an event that the interval does not settle.
func TestRebuildOfAnIntervalLeavesWhatIsNear(t *testing.T) {
	t.Parallel()
	p := newProject(t, fmt.Sprintf(liveConfig, ""))
	at := func(side, id, key string, minute int) {
		p.append(t, side+".ndjson", fmt.Sprintf(`{"id":%q,"rev":1,"key":%q,"time":%q}`, id, key,
			time.Date(2026, 1, 10, 12, minute, 0, 0, time.UTC).Format(time.RFC3339))+"\n")
	}
	at("left", "in", "a", 0)
	at("left", "near", "b", 15)
	for _, side := range []string{"left", "right"} {
		at(side, side+" end", "end", 200)
	}
	p.tally(t, "run", "--until-end")
	at("right", "late in", "a", 0)
	at("right", "late near", "b", 9)
	p.tally(t, "run", "--until-end")
	p.tally(t, "rebuild", "--auto", "--from", "2026-01-10T12:00:00Z", "--to", "2026-01-10T12:01:00Z")
	p.expect(t, "results", activeRows, "matched in/1 late in/1", "final near/1 -",
		"matched left end/1 right end/1")
	p.expect(t, "corrections", "select id || ' ' || status from tally.corrections",
		"late in resolved", "late near open")
	p.tally(t, "rebuild", "--auto")
	p.expect(t, "results", activeRows, "matched in/1 late in/1", "matched near/1 late near/1",
		"matched left end/1 right end/1")
	p.tally(t, "verify", "--deep")
}
