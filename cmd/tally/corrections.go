package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/reconcile/stream"
)

const limitDefault = 1000

func newCorrectionsCommand(a *app) *cobra.Command {
	var status, reason string
	var limit int
	cmd := &cobra.Command{
		Use:   "corrections",
		Short: "List the events that came too late for live state",
		Long: "corrections lists what was set aside because it came later than lateness allows\n" +
			"(past_horizon), or revises an event that has left the buffer (sealed_revision), oldest\n" +
			"first, with the watermark that refused it. They change no result until a rebuild settles\n" +
			"them: tally rebuild --auto all, with --corrections those that live work is past.\n" +
			"resolved_by is the generation that did.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reasons := []string{string(stream.PastHorizon), string(stream.SealedRevision)}
			if err := errors.Join(oneOf("status", status, "open", "resolved"),
				oneOf("reason", reason, reasons...), positive("limit", limit)); err != nil {
				return usageError(err)
			}
			return a.read(cmd.Context(), func(ctx context.Context, r *reading) error {
				return a.corrections(ctx, r, status, reason, limit)
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only open or resolved ones")
	cmd.Flags().StringVar(&reason, "reason", "", "only past_horizon or sealed_revision")
	cmd.Flags().IntVar(&limit, "limit", limitDefault, "at most this many rows")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) corrections(
	ctx context.Context, r *reading, status, reason string, limit int,
) error {
	if _, err := r.serving(ctx); err != nil {
		return err
	}
	t, err := r.command(ctx, "corrections", r.config.Name, status, reason, limit+1)
	if err != nil {
		return err
	}
	a.cut(t, limit)
	t.Empty = "no corrections"
	if a.forPeople() {
		t = pick(t, "correction_id", "status", "reason", "side", "id", "revision", "deleted",
			"key", "event_time", "watermark", "behind", "resolved_by")
	}
	return a.show(t)
}

// oneOf refuses a flag's value that is neither empty nor one of the words.
func oneOf(flag, value string, words ...string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: want %s", flag, value, strings.Join(words, " or "))
}

func positive(flag string, value int) error {
	if value < 1 {
		return fmt.Errorf("--%s %d: want 1 or more", flag, value)
	}
	return nil
}
