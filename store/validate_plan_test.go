package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/store"
)

// TestValidateWithoutStatistics compares a candidate that the planner knows nothing of, while it
// knows its base, and reads the history of the base before that: comparing each row with each would
// take minutes.
func TestValidateWithoutStatistics(t *testing.T) {
	t.Parallel()
	const pairs, enough, enoughToRead = 15_000, 40 * time.Second, 8 * time.Second
	many := func() *stand {
		s := &stand{watermark: 2, position: "900"}
		for n := range pairs {
			l, r := leftRow(n, fmt.Sprint("k", n)), rightRow(n, fmt.Sprint("k", n))
			s.left, s.right = append(s.left, l), append(s.right, r)
			s.results = append(s.results, pair(l, r))
		}
		return s
	}
	c := setupContest(t, many(), nil)
	tables := []string{"buffer", "match", "match_transition"}
	for _, table := range tables {
		c.exec(t, "alter table SCHEMA."+table+" set (autovacuum_enabled = off)")
	}
	reading, done := context.WithTimeout(t.Context(), enoughToRead)
	defer done()
	read := pgx.Identifier{c.db.Schema, "result_history"}.Sanitize()
	var kinds int
	err := c.db.Pool.QueryRow(reading, "select count(kind) from "+read).Scan(&kinds)
	if err != nil || kinds != pairs {
		t.Errorf("the history has %d transitions (%v), want %d", kinds, err, pairs)
	}
	for _, table := range tables {
		c.exec(t, "analyze SCHEMA."+table)
	}
	c.exec(t, "update SCHEMA.shard set lease_until = now()")
	h, err := c.Take(t.Context(), c.candidate, 0, "host/2")
	if err != nil {
		t.Fatal(err)
	}
	first, second := many().epochs()
	commit(t, h, first, second)

	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	got, err := c.Validate(ctx, c.candidate)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Passed || got.InBoth != pairs || got.Scope != store.EveryResult {
		t.Errorf("got %+v, want %d results in both", got, pairs)
	}
}
