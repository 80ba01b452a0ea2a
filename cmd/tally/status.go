package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

func newStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how far each shard is, what holds it, and who works on it",
		Long: "status shows candidates beside the serving generation, what is open to be settled by a\n" +
			"rebuild, and for each shard of the serving generation, its epoch, its low watermark\n" +
			"and the source partitions that hold it, its buffer, its rate and its worker; then how\n" +
			"far each source partition has been read. The rate is that of the newest 20 epochs.\n" +
			"lease_until is when the shard is free for others should its worker die now; requested_by is\n" +
			"the worker that asks for it, to have its share.\n" +
			"The source quarantine stands for released records; it never holds the watermark.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.read(cmd.Context(), a.status) },
	}
	a.outputFlag(cmd)
	return cmd
}

func (a *app) status(ctx context.Context, r *reading) error {
	s, err := r.serving(ctx)
	if err != nil {
		return err
	}
	shards, err := r.command(ctx, "status", r.config.Name)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return a.render(shards)
	}
	sources, err := r.command(ctx, "status_sources", r.config.Name)
	if err != nil {
		return err
	}
	a.printf("%s: generation %d, rule %s (%s join, window %s before to %s after, lateness %s, unmatched "+
		"rows %s)\n", r.config.Name, s.Generation, s.RuleVersion, s.JoinKind,
		micros(s.BeforeUS), micros(s.AfterUS), micros(s.LatenessUS), s.Provisional)
	if err := a.tellRebuilds(ctx, r, shards); err != nil {
		return err
	}
	a.printf("\n")
	if err := a.show(pick(shards, "shard", "epoch", "watermark", "age", "held_by", "held_since",
		"buffered", "events_per_second", "last_epoch_at")); err != nil {
		return err
	}
	a.printf("\n")
	if err := a.show(pick(shards, "shard", "worker", "token", "attempt", "attempt_since",
		"attempt_state", "lease_until", "requested_by", "open_corrections",
		"open_quarantine")); err != nil {
		return err
	}
	a.printf("\n")
	sources.Empty = "no source has been read yet"
	return a.show(sources)
}

func micros(n int64) string {
	return duration(time.Duration(n) * time.Microsecond)
}
