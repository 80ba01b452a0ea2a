package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/store"
)

func newGenerationCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generation",
		Short: "List generations, serve an earlier one again, purge what is no longer needed",
		Long: "A generation is one complete set of state and results of a reconciliation. One serves: it\n" +
			"is what the views show. The others are candidates that are being built (tally rebuild),\n" +
			"or have served.",
		Args: cobra.NoArgs,
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the generations, the newest last",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.read(cmd.Context(), func(ctx context.Context, r *reading) error {
				return a.generations(ctx, r, "")
			})
		},
	}
	a.outputFlag(list)
	serve := &cobra.Command{
		Use:   "serve G",
		Short: "Let a generation serve again that has served before",
		Long: "serve makes generation G what the views show, in one transaction, with just the results\n" +
			"that it had. tally run, with the rule and the number of shards of G, goes on from where\n" +
			"it stood. What was settled since then is open again. The generation that served retires.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withGeneration(cmd.Context(), args[0], a.serve)
		},
	}
	purge := &cobra.Command{
		Use:   "purge G",
		Short: "Delete the rows of a generation that is no longer needed",
		Long: "purge deletes what is stored of generation G, which must be retired, merged or abandoned,\n" +
			"in small steps beside the work. It can't serve again, and its part of result_history goes;\n" +
			"that it existed stays on record. It may be stopped and run again.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withGeneration(cmd.Context(), args[0], a.purgeGeneration)
		},
	}
	cmd.AddCommand(list, serve, purge)
	return cmd
}

// generations lists those of the reconciliation that have a status, all where it is empty.
func (a *app) generations(ctx context.Context, r *reading, status store.GenerationStatus) error {
	t, err := r.command(ctx, "generations", r.config.Name, string(status))
	if err != nil {
		return err
	}
	t.Empty = "no generation"
	if status == store.Candidate {
		t.Empty = "no candidate"
	}
	if a.forPeople() {
		t = told(pick(t, "generation", "status", "status_at", "kind", "interval_from",
			"interval_to", "rule_version", "shards", "base", "epoch", "watermark", "building",
			"validated", "unexplained", "accepted_by"))
	}
	return a.show(t)
}

// told leaves out the columns in which no row says anything.
func told(t *table.Table) *table.Table {
	var columns []string
	for i, name := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(row []any) bool { return row[i] != nil }) {
			columns = append(columns, name)
		}
	}
	if columns == nil {
		return t
	}
	return pick(t, columns...)
}

// withGeneration gives a command the generation that its argument names.
func (a *app) withGeneration(
	ctx context.Context, argument string,
	do func(context.Context, *store.Store, *store.Generation) error,
) error {
	number, err := strconv.ParseInt(argument, 10, 32)
	if err != nil {
		return usageError(fmt.Errorf("generation %q: want its number; tally generation list shows them",
			argument))
	}
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := s.Generations(ctx, c.Name)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].ID == int32(number) {
			return do(ctx, s, &list[i])
		}
	}
	return usageError(fmt.Errorf("%s has no generation %d; tally generation list shows them", c.Name,
		number))
}

func (a *app) serve(ctx context.Context, s *store.Store, g *store.Generation) error {
	switch g.Status {
	case store.Serving:
		a.printf("generation %d serves already\n", g.ID)
		return nil
	case store.Retired:
	default:
		return usageError(fmt.Errorf("generation %d is %s: only one that has served can serve again; "+
			"tally rebuild promote is for candidates", g.ID, g.Status))
	}
	done, err := s.Promote(ctx, store.Promotion{
		Reconciliation: g.Reconciliation, Candidate: g.ID, Worker: workerName(),
	})
	if err != nil {
		return err
	}
	a.printf("generation %d (rule %s, %s) serves since epoch %d: %s\n", g.ID, g.RuleVersion,
		count(int64(g.Shards), "shard"), done.Epoch, count(done.Changes, "change"))
	return nil
}

func (a *app) purgeGeneration(ctx context.Context, s *store.Store, g *store.Generation) error {
	switch g.Status {
	case store.Serving:
		return usageError(fmt.Errorf("generation %d is serving: what the views show can't be purged",
			g.ID))
	case store.Candidate:
		return usageError(fmt.Errorf("generation %d is a candidate: tally rebuild abandon gives it up "+
			"first", g.ID))
	default:
	}
	var rows int64
	err := s.PurgeGeneration(ctx, g.ID, func(n int64) {
		rows += n
		a.logger.Debug("purging", "generation", g.ID, "rows", rows)
	})
	if err != nil {
		return err
	}
	a.printf("generation %d is purged: %s\n", g.ID, count(rows, "row"))
	return nil
}
