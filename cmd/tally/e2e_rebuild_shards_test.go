package main

import (
	"strings"
	"testing"
)

const (
	activeSaid = `select concat_ws(' ', match_id, kind, status, key, left_time, right_time, verdict,
		differences, partners, is_final) from tally.results`
	generationRows = `select concat_ws(' ', generation_id, status, rule_version, shards)
		from tally.generation`
)

// TestRebuildChangesTheNumberOfShards: there and back, the rows are the same.
func TestRebuildChangesTheNumberOfShards(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	l.fill(t, 0, 60)
	l.close(t, 200)
	l.fill(t, 201, 212) // these are still open
	l.tally(t, "run", "--until-end")
	said := l.lines(t, activeSaid)
	old := l.live(t)
	l.waitFor(t, "the old run works", "select count(worker)::text from tally.shard", "1")
	l.configure(t, ledgerConfig+"shards: 4\n")
	l.refused(t, exitUsage, []string{"1 shards, the configuration version v1 and 4", "rebuild"},
		"run", "--until-end")
	l.prints(t, exitDone, []string{"generation 2 serves", "0 changes"}, "rebuild", "--auto")
	l.expect(t, "rows of four shards", activeSaid, said...)
	old.exits(t, exitUsage, "generation 2 has version v1 and 4 shards, the configuration version v1 "+
		"and 1")
	l.expect(t, "shards used", "select count(distinct shard)::text from tally.results", "4")
	l.verifies(t)

	next := l.live(t)
	l.fill(t, 212, 230)
	l.waitFor(t, "the new run goes on", "select right_id from tally.results where left_id = 'l229'",
		"r229")
	l.add(t, lateFacts()...)
	l.waitFor(t, "late facts", "select count(*)::text from tally.corrections", "4")
	if code := next.stop(); code != exitDone {
		t.Errorf("exit %d\n%s", code, next.stderr)
	}
	l.configure(t, ledgerConfig)
	l.prints(t, exitDone, []string{"generation 3 serves", "4 corrections resolved"}, "rebuild", "--auto")
	l.verifies(t)
	l.close(t, 400)
	l.tally(t, "run", "--until-end")
	l.equalsOracle(t, "in the end")
	l.expect(t, "generations", generationRows, "1 retired v1 1", "2 retired v1 4", "3 serving v1 1")
	l.verifies(t)
}

// TestRebuildOfAnotherRule: a narrower window under a new version, and back to the old one.
func TestRebuildOfAnotherRule(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	facts := []fact{plain("l", 0), plain("l", 1), plain("l", 2), plain("r", 0), plain("r", 1)}
	facts[4].minute = 9
	l.add(t, facts...)
	l.close(t, 100)
	l.tally(t, "run", "--until-end")
	l.expect(t, "under v1", activeRows, "matched l0/1 r0/1", "matched l1/1 r1/1", "final l2/1 -",
		"matched l100/1 r100/1")
	said := l.lines(t, activeSaid)

	narrower := strings.Replace(ledgerConfig, "after: 10m", "after: 5m", 1)
	l.configure(t, narrower)
	l.refused(t, exitUsage, []string{"v1", "after", "new rule.version"}, "rebuild", "start")
	l.configure(t, strings.Replace(narrower, "v1", "v2", 1))
	l.tally(t, "rebuild", "start")
	l.refused(t, exitUsage, []string{"v1", "v2"}, "run", "--until-end")
	l.tally(t, "rebuild", "run")
	l.prints(t, exitDone, []string{
		"2 only in the candidate, 1 only in what serves; 3 differences explained, 0 not: passed",
		"rule v2",
	}, "rebuild", "validate")
	l.expect(t, "v1 still serves", activeSaid, said...)
	l.prints(t, exitDone, []string{"generation 2 serves"}, "rebuild", "promote")
	l.expect(t, "under v2", activeRows, "matched l0/1 r0/1", "final l1/1 -", "final - r1/1",
		"final l2/1 -", "matched l100/1 r100/1")
	l.expect(t, "no identity is an old one", `select count(*)::text from tally.match
		where generation_id = 1 and encode(match_id, 'hex') in (select match_id from tally.results)`, "0")
	l.expect(t, "identities are those of v2", `select distinct (match_id = tally.match_identity(left_id,
		left_revision::text, right_id, right_revision::text, 'v2'))::text from tally.results`, "true")
	l.verifies(t)

	l.prints(t, exitDone, []string{"generation 1 (rule v1, 1 shard) serves"}, "generation", "serve", "1")
	l.expect(t, "v1 serves again", activeSaid, said...)
	l.refused(t, exitUsage, []string{"v1", "v2"}, "run", "--until-end")
	l.configure(t, ledgerConfig)
	l.close(t, 200)
	l.tally(t, "run", "--until-end")
	l.expect(t, "v1 goes on", "select right_id from tally.results where left_id = 'l200'", "r200")
	l.expect(t, "generations", generationRows, "1 serving v1 1", "2 retired v2 1")
	l.verifies(t)
	l.prints(t, exitDone, []string{"generation 2 (rule v2"}, "generation", "serve", "2")
	l.verifies(t)
}
