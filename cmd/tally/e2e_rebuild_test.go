package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// ledgerConfig reads left.ndjson and right.ndjson, and compares amounts.
const ledgerConfig = `name: ledger
rule:
  {version: v1, join: full, before: 10m, after: 10m, lateness: 5m,
    compare: [{left: amount, right: amount}]}
left:
  {source: {type: file, path: left.ndjson}, id: id, revision: rev, key: key, time: time,
    deleted: gone}
right:
  {source: {type: file, path: right.ndjson}, id: id, revision: rev, key: key, time: time,
    deleted: gone}
`

// fact is one revision of an event of a ledger.
type fact struct {
	// side is l or r; n is its number on that side.
	side   string
	n, rev int
	key    string
	// minute is its event time, from noon.
	minute, amount int
	gone           bool
}

func (f fact) line() string {
	return fmt.Sprintf(`{"id":"%s%d","rev":%d,"key":%q,"time":%q,"amount":%d,"gone":%t}`+"\n",
		f.side, f.n, f.rev, f.key, atMinute(f.minute).Format(time.RFC3339), f.amount, f.gone)
}

// atMinute is the event time of a minute.
func atMinute(minute int) time.Time { return time.Date(2026, 1, 10, 12, minute, 0, 0, time.UTC) }

// plain is the first revision of event n, which has its partner on the other side.
func plain(side string, n int) fact {
	return fact{side: side, n: n, rev: 1, key: fmt.Sprint("k", n), minute: n, amount: n}
}

// revised is the next revision of event n.
func revised(f fact, change func(*fact)) fact {
	f.rev++
	change(&f)
	return f
}

// ledger is a project and the facts that its two files have.
type ledger struct {
	*project
	facts []fact
	// reach is before and after of the rule.
	reach time.Duration
}

func newLedger(t *testing.T, config string) *ledger {
	t.Helper()
	return &ledger{project: newProject(t, config), reach: 10 * time.Minute}
}

// add appends facts to the files.
func (l *ledger) add(t *testing.T, facts ...fact) {
	t.Helper()
	text := map[string]string{"l": "", "r": ""}
	for _, f := range facts {
		text[f.side] += f.line()
	}
	l.append(t, "left.ndjson", text["l"])
	l.append(t, "right.ndjson", text["r"])
	l.facts = append(l.facts, facts...)
}

// fill adds the events from number a to b; every fifth has no partner.
func (l *ledger) fill(t *testing.T, a, b int) {
	t.Helper()
	var facts []fact
	for n := a; n < b; n++ {
		facts = append(facts, plain("l", n))
		if n%5 != 0 {
			facts = append(facts, plain("r", n))
		}
	}
	l.add(t, facts...)
}

// close adds a pair that lets the watermark pass everything else.
func (l *ledger) close(t *testing.T, n int) {
	t.Helper()
	l.add(t, plain("l", n), plain("r", n))
}

// oracle computes in one SQL statement the active rows of a run over all facts that is past them.
func (l *ledger) oracle(t *testing.T) []string {
	t.Helper()
	h := &oracle.History{Rule: oracle.Rule{Join: oracle.JoinFull, Before: l.reach, After: l.reach}}
	for side, name := range []string{"l", "r"} {
		lane := oracle.Slice{Partition: stream.Partition{Side: stream.Side(side), Source: "file"}}
		for _, f := range l.facts {
			if f.side == name {
				lane.Records = append(lane.Records, stream.Record{Event: stream.Event{
					ID: fmt.Sprint(name, f.n), Revision: int64(f.rev), Key: f.key,
					Time: stream.MicrosOf(atMinute(f.minute)), HasTime: true, Deleted: f.gone,
				}})
			}
		}
		h.Lanes = append(h.Lanes, lane)
	}
	tx, err := l.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	want, err := oracle.Batch(t.Context(), tx, h, oracle.BatchSQL{
		RawEvent: queries.Torture("raw_event"), Join: queries.Torture("batch"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// equalsOracle compares the active rows with the oracle.
func (l *ledger) equalsOracle(t *testing.T, when string) {
	t.Helper()
	want, got := l.oracle(t), l.lines(t, activeRows)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d active rows, want %d:\n%s", when, len(got), len(want),
			strings.Join(difference(got, want), "\n"))
	}
}

// verifies runs verify --deep, which must find nothing.
func (l *ledger) verifies(t *testing.T) {
	t.Helper()
	if code, stdout, stderr := l.execute(t, "verify", "--deep"); code != exitDone {
		t.Errorf("verify exits with %d:\n%s%s", code, stdout, stderr)
	}
}

// prints runs a command line that must exit with a code and print texts on standard output.
func (p *project) prints(t *testing.T, code int, says []string, args ...string) {
	t.Helper()
	got, stdout, stderr := p.execute(t, args...)
	if got != code {
		t.Fatalf("tally %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	for _, text := range says {
		if !strings.Contains(stdout, text) {
			t.Errorf("tally %s: no %q in\n%s", strings.Join(args, " "), text, stdout)
		}
	}
}

// settled lets the ledger settle events 0 to 59 and then come too late with four facts: a revision
// of an amount, one that moves to the key of another pair, the partner of one that was alone, and a
// tombstone. It gives the rows before that.
func (l *ledger) settled(t *testing.T) (before []string) {
	t.Helper()
	l.fill(t, 0, 60)
	l.close(t, 200)
	l.tally(t, "run", "--until-end")
	l.equalsOracle(t, "what came in time")
	before = l.lines(t, "select r::text from tally.results r")
	l.add(t, lateFacts()...)
	l.tally(t, "run", "--until-end")
	return before
}

func lateFacts() []fact {
	return []fact{
		revised(plain("l", 3), func(f *fact) { f.amount = 33 }),
		revised(plain("l", 14), func(f *fact) { f.key, f.minute = "k16", 16 }),
		plain("r", 25),
		revised(plain("r", 41), func(f *fact) { f.gone = true }),
	}
}

const (
	correctionRows = `select concat_ws(' ', side, id, revision, reason, status,
		to_char(interval_from at time zone 'UTC', 'HH24:MI'),
		to_char(interval_to at time zone 'UTC', 'HH24:MI'), resolved_by) from tally.corrections`
	rebuilt = `select concat_ws(' ', h.from_status, h.to_status, h.reason,
		coalesce(m.left_id || '/' || m.left_revision, '-'),
		coalesce(m.right_id || '/' || m.right_revision, '-'))
		from tally.result_history h
		join tally.match m on encode(m.match_id, 'hex') = h.match_id
			and m.generation_id = (select generation_id from tally.serving)
		where h.reason = 'rebuild'`
)

// rebuiltRows are the transitions that settle the four late facts.
var rebuiltRows = []string{
	"final superseded rebuild l25/1 -",
	"matched rebuild l14/2 r16/1",
	"matched rebuild l25/1 r25/1",
	"matched rebuild l3/2 r3/1",
	"matched superseded rebuild l14/1 r14/1",
	"matched superseded rebuild l3/1 r3/1",
	"matched superseded rebuild l41/1 r41/1",
	"final rebuild - r14/1",
	"final rebuild l41/1 -",
}

// TestRebuildSettlesCorrections: live work leaves alone what came too late, a rebuild settles it, and
// live work goes on with what it built.
func TestRebuildSettlesCorrections(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	before := l.settled(t)
	l.expect(t, "live rows have not moved", "select r::text from tally.results r", before...)
	l.expect(t, "corrections", correctionRows,
		"left l3 2 sealed_revision open 11:53 12:13",
		"left l14 2 sealed_revision open 12:04 12:26",
		"right r25 1 past_horizon open 12:15 12:35",
		"right r41 2 sealed_revision open 12:31 12:51")
	l.prints(t, exitDone, []string{
		"generation 2 is a candidate beside generation 1, over all that the sources have",
		"generation 2 serves since epoch", "9 changes, 4 corrections resolved",
	}, "rebuild", "--auto")
	l.equalsOracle(t, "after the rebuild")
	l.expect(t, "the revised pair is compared again", `select verdict || ' ' ||
		(differences -> 0 ->> 'left') from tally.results where left_id = 'l3'`, "differ 33")
	l.expect(t, "resolved", "select distinct concat_ws(' ', status, resolved_by) from tally.corrections",
		"resolved 2")
	l.expect(t, "history", rebuilt, rebuiltRows...)
	l.verifies(t)
	l.fill(t, 201, 230)
	l.close(t, 400)
	l.tally(t, "run", "--until-end")
	l.equalsOracle(t, "after more live work")
	l.expect(t, "the new generation went on", `select generation_id || ' ' || (sum(read) > 0)
		from tally.epoch where epoch > (select max(epoch) from tally.epoch where kind = 'rebuild')
		group by generation_id`, "2 true")
	l.verifies(t)
}
