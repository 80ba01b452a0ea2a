package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestGenerationsAreListedServedAndPurged also shows what is refused.
func TestGenerationsAreListedServedAndPurged(t *testing.T) {
	t.Parallel()
	l := newLedger(t, ledgerConfig)
	l.refused(t, exitFailed, []string{"has not run", "tally run"}, "rebuild", "start")
	l.prints(t, exitDone, []string{"no generation"}, "generation", "list")
	l.settled(t)
	said := l.lines(t, activeSaid)
	for _, c := range []struct {
		code int
		says string
		args string
	}{
		{exitUsage, "there is no candidate; tally rebuild start", "rebuild run"},
		{exitUsage, "there is no candidate; tally rebuild start", "rebuild validate"},
		{exitUsage, "there is no candidate; tally rebuild start", "rebuild promote"},
		{exitUsage, "there is no candidate; tally rebuild start", "rebuild abandon"},
		{exitUsage, "ledger has no generation 7", "rebuild promote --generation 7"},
		{exitUsage, "generation 1 is serving, no candidate", "rebuild promote --generation 1"},
		{exitUsage, "want its number", "generation serve first"},
		{exitUsage, "has no generation 7", "generation serve 7"},
		{exitUsage, "has no generation 7", "generation purge 7"},
		{exitUsage, "generation 1 is serving", "generation purge 1"},
		{exitUsage, "arg", "generation purge"},
	} {
		l.refused(t, c.code, []string{c.says}, strings.Fields(c.args)...)
	}
	l.prints(t, exitDone, []string{"generation 1 serves already"}, "generation", "serve", "1")
	l.tally(t, "rebuild", "start")
	l.refused(t, exitUsage, []string{"generation 2 is a candidate", "tally rebuild abandon"},
		"generation", "purge", "2")
	l.refused(t, exitUsage, []string{"tally rebuild promote"}, "generation", "serve", "2")
	l.prints(t, exitRefused, []string{"NOT PASSED"}, "rebuild", "promote")
	l.prints(t, exitDone, []string{"candidate"}, "rebuild", "list")
	l.prints(t, exitDone, []string{"abandoned", "tally generation purge 2"}, "rebuild", "abandon")
	l.prints(t, exitDone, []string{"no candidate"}, "rebuild", "list")
	l.refused(t, exitUsage, []string{"generation 2 is abandoned"}, "generation", "serve", "2")
	l.tally(t, "rebuild", "--auto")
	l.equalsOracle(t, "after the rebuild")
	now := l.lines(t, activeSaid)

	l.prints(t, exitDone, []string{"generation 1"}, "generation", "serve", "1")
	l.expect(t, "the first serves", activeSaid, said...)
	l.expect(t, "its corrections", "select distinct status from tally.corrections", "open")
	l.verifies(t)
	l.prints(t, exitDone, []string{"generation 3"}, "generation", "serve", "3")
	l.expect(t, "the third serves", activeSaid, now...)
	l.verifies(t)
	for _, g := range []string{"1", "2"} {
		l.prints(t, exitDone, []string{"generation " + g + " is purged: "}, "generation", "purge", g)
		l.expectNoRow(t, g)
	}
	l.prints(t, exitDone, []string{"generation 1 is purged: 0 rows"}, "generation", "purge", "1")
	l.refused(t, exitUsage, []string{"generation 1 is purged"}, "generation", "serve", "1")
	l.expect(t, "generations", generationRows, "1 purged v1 1", "2 purged v1 1", "3 serving v1 1")
	l.expect(t, "the third serves", activeSaid, now...)
	l.verifies(t)
	l.close(t, 300)
	l.tally(t, "run", "--until-end")
	l.equalsOracle(t, "in the end")
}

// expectNoRow looks into every table with a generation_id but those that keep on record that there
// was such a generation, and who accepted what of it.
func (l *ledger) expectNoRow(t *testing.T, generation string) {
	t.Helper()
	for _, table := range l.lines(t, `select table_name from information_schema.columns
		join information_schema.tables using (table_schema, table_name)
		where table_schema = 'tally' and column_name = 'generation_id' and table_type = 'BASE TABLE'
			and table_name not in ('generation', 'validation')`) {
		l.expect(t, table, fmt.Sprintf("select count(*)::text from tally.%s where generation_id = %s",
			table, generation), "0")
	}
}
