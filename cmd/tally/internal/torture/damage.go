package torture

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/store"
)

// damageTables are the state tables, damageOperations what happens to a row of one.
var (
	damageTables = []string{
		"buffer", "match", "match_transition", "source_offset", "epoch", "shard", "correction",
		"quarantine",
	}
	damageOperations = []string{"update", "delete", "insert"}
)

// damageNames gives every damage by table and operation.
func damageNames() (names []string) {
	for _, table := range damageTables {
		for _, operation := range damageOperations {
			if name := table + " " + operation; name != "shard delete" && name != "shard insert" {
				names = append(names, name)
			}
		}
	}
	return names
}

// damage does to a stored row what a fault of that mode says. Where no row is there to damage the
// fault has not struck.
func (t *trial) damage(ctx context.Context, f Fault) error {
	sql := queries.Render(queries.Torture("damage_function"), t.schema)
	if _, err := t.conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("prepare a damage: %w", err)
	}
	rng := rand.New(rand.NewPCG(t.seed, streamDamage+uint64(f.Epoch)))
	what, operation, _ := strings.Cut(f.Damage, " ")
	if _, err := t.conn.Exec(ctx, queries.Torture("damage_keep"), what); err != nil {
		return fmt.Errorf("copy a table before it is damaged: %w", err)
	}
	var done *string
	row := t.conn.QueryRow(ctx, queries.Torture("damage"), what, operation, rng.Int64())
	if err := row.Scan(&done); err != nil {
		return fmt.Errorf("damage a row: %w", err)
	}
	if done == nil {
		t.result.Struck = t.result.Struck[:len(t.result.Struck)-1]
		return nil
	}
	t.damages = append(t.damages, what+" "+*done)
	t.damaged = what
	// Epochs are numbered anew after it.
	t.committed, t.unknown = 0, 0
	clear(t.from)
	return nil
}

// found holds how many starts found a damage against how many there were.
func (t *trial) found(ctx context.Context) error {
	var starts int
	var newest string
	row := t.conn.QueryRow(ctx, queries.Render(queries.Torture("damage_found"), t.schema))
	if err := row.Scan(&starts, &newest); err != nil {
		return fmt.Errorf("read what the starts found damaged: %w", err)
	}
	switch n := len(t.damages) - int(t.result.Reached[refused]); {
	case starts < n:
		return fmt.Errorf("a damage was not found: %s", t.damages[len(t.damages)-1])
	case starts > n:
		return fmt.Errorf("a start found %s, after %d damages: %q", newest, n, t.damages)
	}
	return nil
}

// putBack undoes a damage that a start refused to go on from, as from a backup. The start has to name
// the damage and what repairs it, and changes nothing: so the next one goes on.
func (t *trial) putBack(ctx context.Context, w *worker) error {
	if t.damaged == "" {
		return fmt.Errorf("a start refused to go on, and nothing was damaged since the last; %s", w.says())
	}
	if said := w.says(); !strings.Contains(said, "tally restore") {
		return fmt.Errorf("a start refused to go on after a damage, and did not say what repairs it: %s; "+
			"%s", t.damages[len(t.damages)-1], said)
	}
	if _, err := t.conn.Exec(ctx, queries.Torture("damage_put_back"), t.damaged); err != nil {
		return fmt.Errorf("put rows back: %w", err)
	}
	t.damaged = ""
	t.result.Reached[refused]++
	return nil
}

// verify looks at everything there is, once more.
func (t *trial) verify(ctx context.Context) error {
	s, err := store.Open(ctx, store.Config{
		ConnString: t.Database, Schema: t.schema, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	rows, err := t.conn.Query(ctx, queries.Render(queries.Torture("shards"), t.schema))
	if err != nil {
		return fmt.Errorf("list the shards: %w", err)
	}
	shards, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Generation, Shard int32 }])
	if err != nil {
		return fmt.Errorf("list the shards: %w", err)
	}
	for _, h := range shards {
		report, err := s.Verify(ctx, h.Generation, h.Shard, true)
		if err != nil {
			return err
		}
		if len(report.Damage) > 0 {
			return fmt.Errorf("verify finds %v; damages were %q", report.Damage, t.damages)
		}
	}
	return nil
}

// damageTable counts the damages by table and operation.
func (r *Report) damageTable(struck map[string]int) *table.Table {
	t := &table.Table{
		Title:   "Rows damaged by hand:",
		Columns: append([]string{"table"}, damageOperations...),
	}
	for _, name := range damageTables {
		row := []any{name}
		for _, operation := range damageOperations {
			row = append(row, struck[Fault{Mode: Damage, Damage: name + " " + operation}.String()])
		}
		t.Add(row...)
	}
	return t
}
