package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/store"
)

func newVerifyCommand(a *app) *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare what is stored with what was written, and name what is damaged",
		Long: "verify reads the tables of every shard as of one moment and compares them with the\n" +
			"manifests: the chain of digests, source offsets and watermark, the buffer, the results\n" +
			"and transitions of the newest epochs, what was set aside; and the tables with each\n" +
			"other. --deep reads all there is, of every epoch: it takes as long as reading the\n" +
			"tables. It changes nothing and may run beside tally run.\n\n" +
			"It exits with 3 when something is damaged, and names the rows. A run that is started\n" +
			"on a damaged shard goes back to the newest epoch that verifies by itself; to go\n" +
			"further back, see tally restore.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), deep) },
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read everything of every epoch")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) verify(ctx context.Context, deep bool) error {
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	generations, err := generationsOf(ctx, s, c.Name)
	if err != nil {
		return err
	}
	var reports []store.Report
	for _, g := range generations {
		for shard := range g.Shards {
			report, err := s.Verify(ctx, g.Generation, shard, deep)
			if err != nil {
				return err
			}
			reports = append(reports, report)
		}
	}
	return a.showReports(reports)
}

// generationSize is a generation and how many shards it has.
type generationSize struct{ Generation, Shards int32 }

// generationsOf refuses a reconciliation that has never run.
func generationsOf(
	ctx context.Context, s *store.Store, reconciliation string,
) ([]generationSize, error) {
	sql := queries.Render(queries.Command("verify_generations"), s.Schema())
	rows, err := s.Pool().Query(ctx, sql, reconciliation)
	if err != nil {
		return nil, fmt.Errorf("look for reconciliation %s: %w", reconciliation, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[generationSize])
	if err != nil {
		return nil, fmt.Errorf("look for reconciliation %s: %w", reconciliation, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("reconciliation %s has not run in schema %s yet; "+
			"start it with tally run", reconciliation, s.Schema())
	}
	return list, nil
}

// showReports prints what was looked at and what is damaged: two tables for people, one else.
func (a *app) showReports(reports []store.Report) error {
	checks := &table.Table{Columns: []string{
		"generation", "shard", "epoch", "check", "rows", "damaged",
	}}
	damage := &table.Table{Title: "\nDamaged:", Columns: []string{
		"generation", "shard", "table", "row", "what",
	}}
	all := &table.Table{Columns: []string{
		"generation", "shard", "epoch", "check", "rows", "damaged", "table", "row", "what",
	}}
	for _, r := range reports {
		for _, c := range r.Checks {
			checks.Add(r.Generation, r.Shard, r.Epoch, c.Name, c.Rows, c.Damaged)
			all.Add(r.Generation, r.Shard, r.Epoch, c.Name, c.Rows, c.Damaged, nil, nil, nil)
		}
		for _, d := range r.Damage {
			damage.Add(r.Generation, r.Shard, d.Table, d.Row, d.What)
			all.Add(r.Generation, r.Shard, r.Epoch, nil, nil, nil, d.Table, d.Row, d.What)
		}
	}
	if !a.forPeople() {
		return errors.Join(a.render(all), damagedError(len(damage.Rows)))
	}
	if err := a.show(checks); err != nil {
		return err
	}
	if len(damage.Rows) == 0 {
		a.printf("\nnothing is damaged\n")
		return nil
	}
	return errors.Join(a.show(damage), damagedError(len(damage.Rows)))
}

func damagedError(rows int) error {
	if rows == 0 {
		return nil
	}
	return &exitError{exitIntegrity, fmt.Errorf("%d rows are damaged; tally run goes back to the "+
		"newest epoch that verifies, tally restore --to-epoch N to an earlier one", rows)}
}
