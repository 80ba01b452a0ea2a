package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// manyPairs is enough for comparing each row with each to take longer than a test waits; what is tested
// takes a second or two.
const manyPairs = 20_000

// many gives the stand of a generation with manyPairs results.
func many() *stand {
	s := &stand{watermark: 2, position: "900"}
	for n := range manyPairs {
		l, r := leftRow(n, fmt.Sprint("k", n)), rightRow(n, fmt.Sprint("k", n))
		s.left, s.right = append(s.left, l), append(s.right, r)
		s.results = append(s.results, pair(l, r))
	}
	return s
}

// blind sets up a contest whose tables nobody analyzes.
func blind(t *testing.T, base, candidate *stand) *contest {
	t.Helper()
	c := setupContest(t, nil, nil)
	c.eachTable(t, "alter table SCHEMA.%s set (autovacuum_enabled = off)")
	c.fill(t, c.generation, base)
	if candidate != nil {
		c.fill(t, c.candidate, candidate)
	}
	return c
}

func (c *contest) eachTable(t *testing.T, sql string) {
	t.Helper()
	for _, table := range []string{"buffer", "match", "match_transition", "correction"} {
		c.exec(t, fmt.Sprintf(sql, table))
	}
}

// fill has a generation commit the epochs of a stand.
func (c *contest) fill(t *testing.T, generation int32, s *stand) {
	t.Helper()
	first, second := s.epochs()
	commit(t, c.takeOver(t, generation), first, second)
}

// takeOver takes the shard of a generation, whoever holds it.
func (c *contest) takeOver(t *testing.T, generation int32) *store.Shard {
	t.Helper()
	c.exec(t, "update SCHEMA.shard set lease_until = now()")
	h, err := c.Take(t.Context(), generation, 0, "host/2")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestValidateWithoutStatistics compares a candidate that the planner knows nothing of, while it
// knows its base, and reads the history of the base before that.
func TestValidateWithoutStatistics(t *testing.T) {
	t.Parallel()
	c := blind(t, many(), nil)
	reading, done := context.WithTimeout(t.Context(), 15*time.Second)
	defer done()
	read := pgx.Identifier{c.db.Schema, "result_history"}.Sanitize()
	var kinds int
	err := c.db.Pool.QueryRow(reading, "select count(kind) from "+read).Scan(&kinds)
	if err != nil || kinds != manyPairs {
		t.Errorf("the history has %d transitions (%v), want %d", kinds, err, manyPairs)
	}
	c.eachTable(t, "analyze SCHEMA.%s")
	c.fill(t, c.candidate, many())

	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	got, err := c.Validate(ctx, c.candidate)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Passed || got.InBoth != manyPairs || got.Scope != store.EveryResult {
		t.Errorf("got %+v, want %d results in both", got, manyPairs)
	}
}

// TestPromoteWithManyCorrections looks for the events of a correction among many results, for each.
func TestPromoteWithManyCorrections(t *testing.T) {
	t.Parallel()
	const corrections = 16_000
	var late []stream.Event
	for n := range corrections {
		late = append(late, event(fmt.Sprint("r", n), fmt.Sprint("k", n), 1))
	}
	c := blind(t, many().set(late...), many())
	c.pass(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all := func(context.Context, *store.OpenCorrection) (bool, error) { return true, nil }
	done, err := c.Promote(ctx, store.Promotion{
		Reconciliation: "payments", Candidate: c.candidate, Worker: "host/1", Settles: all,
	})
	if err != nil {
		t.Fatal(err)
	}
	if done.Resolved != corrections || done.Changes != 0 {
		t.Errorf("promoted %+v, want no change and %d corrections resolved", done, corrections)
	}
}

// TestFallBackWithoutStatistics goes back behind the epoch that published many results.
func TestFallBackWithoutStatistics(t *testing.T) {
	t.Parallel()
	c := blind(t, many(), nil)
	c.exec(t, "update SCHEMA.epoch set stale = stale + 1, read = read + 1 where epoch = 2")
	h := c.takeOver(t, c.generation)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	state, err := h.Restore(ctx, store.Thorough, unloaded)
	if err != nil {
		t.Fatal(err)
	}
	if state.RestoredTo != 1 {
		t.Errorf("restored epoch %d, want 1", state.RestoredTo)
	}
	var retracted int
	sql := "select count(*) from " + pgx.Identifier{c.db.Schema, "match"}.Sanitize() +
		" where status = 'retracted'"
	err = c.db.Pool.QueryRow(t.Context(), sql).Scan(&retracted)
	if err != nil || retracted != manyPairs {
		t.Errorf("%d results are retracted (%v), want %d", retracted, err, manyPairs)
	}
}
