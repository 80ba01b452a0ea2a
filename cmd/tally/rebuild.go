package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// rebuildFlags say what a rebuild is over, and which candidate is meant.
type rebuildFlags struct {
	from, to    string
	corrections bool
	auto        bool
	generation  int32
	follow      bool
	by, why     string
	accept      bool
}

func newRebuildCommand(a *app) *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Settle corrections: build a candidate beside what serves, compare, switch",
		Long: "A rebuild reads the sources again into a candidate, a generation of its own that no view\n" +
			"shows, while tally run goes on. What came too late for live state is in time there. When\n" +
			"the candidate has caught up it is compared with what serves: each difference must be\n" +
			"explained by an open correction, or by the new rule. Only then is it promoted, in one\n" +
			"transaction: a reader sees the old results or the new ones.\n\n" +
			"A full rebuild reads both sides from the beginning and replaces what serves. It is also the\n" +
			"way to a changed rule, under a new rule.version, or another number of shards: change the\n" +
			"configuration, build, promote, and restart the runs with it. With --from and --to, or\n" +
			"--corrections, a rebuild is over an interval of event times only, and its differences are\n" +
			"merged into what serves.\n\n" +
			"rebuild --auto does all steps and stops at the first doubt; the candidate stays, to be\n" +
			"looked at. A candidate may also be left beside what serves for as long as you want, as a\n" +
			"shadow: tally rebuild run --follow keeps it up to date, the view rebuild_changes shows what\n" +
			"it would change.",
		Example: "  tally rebuild --auto                       all corrections, all steps\n" +
			"  tally rebuild --auto --corrections         only the intervals that corrections name\n" +
			"  tally rebuild start && tally rebuild run   step by step\n" +
			"  tally rebuild validate && tally rebuild promote",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !f.auto {
				return usageError(errors.New("say a step (tally help rebuild lists them) or --auto"))
			}
			return a.rebuild(cmd.Context(), &f)
		},
	}
	cmd.Flags().BoolVar(&f.auto, "auto", false, "start, run, validate and promote")
	f.interval(cmd)
	cmd.AddCommand(newRebuildSteps(a, &f)...)
	return cmd
}

// interval adds the flags that say what a rebuild is over.
func (f *rebuildFlags) interval(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "only this interval of event times: its begin, RFC 3339")
	flags.StringVar(&f.to, "to", "", "and its end, which is not part of it")
	flags.BoolVar(&f.corrections, "corrections", false,
		"only the interval of the open corrections that are past all live work")
}

func newRebuildSteps(a *app, f *rebuildFlags) []*cobra.Command {
	step := func(
		use, short, long string, do func(context.Context, *rebuildFlags) error,
	) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Long: long, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd.Context(), f) },
		}
	}
	start := step("start", "Begin a candidate beside what serves",
		"start checks that the sources can be read from the beginning, takes note of where what serves\n"+
			"stands, and begins a candidate of the rule and shards of the configuration.", a.rebuildStart)
	f.interval(start)
	run := step("run", "Build the candidate, until it has read all there is",
		"run reads the sources into the candidate and goes on where the last run stopped, however that\n"+
			"ended. Several runs share its shards.", a.rebuildRun)
	run.Flags().BoolVar(&f.follow, "follow", false, "go on until it is promoted, or stopped")
	validate := step("validate", "Compare the candidate with what serves",
		"validate compares both and keeps the outcome. Exit code 6 says that something differs which no\n"+
			"open correction explains: it is listed, and promote refuses the candidate unless somebody\n"+
			"accepts the differences, which is kept on record. A damaged row, or a source that was not\n"+
			"read, nobody can accept.", a.rebuildValidate)
	flags := validate.Flags()
	flags.BoolVar(&f.accept, "accept-differences", false, "let it be promoted all the same")
	flags.StringVar(&f.by, "by", "", "who accepts the differences")
	flags.StringVar(&f.why, "why", "", "and why")
	a.outputFlag(validate)
	promote := step("promote", "Let the candidate serve, or merge its interval",
		"promote compares once more, unless differences were accepted, and switches in one transaction.\n"+
			"A candidate that what serves has passed meanwhile must catch up first (exit code 1).",
		a.rebuildPromote)
	abandon := step("abandon", "Give the candidate up", "abandon ends the candidate. Its rows stay "+
		"until tally generation purge deletes them.", a.rebuildAbandon)
	steps := []*cobra.Command{start, run, validate, promote, abandon}
	for _, cmd := range steps[1:] {
		cmd.Flags().Int32Var(&f.generation, "generation", 0,
			"the candidate (default: the newest one)")
	}
	list := step("list", "List the candidates", "", func(ctx context.Context, _ *rebuildFlags) error {
		return a.read(ctx, func(ctx context.Context, r *reading) error {
			return a.generations(ctx, r, store.Candidate)
		})
	})
	a.outputFlag(list)
	return append(steps, list)
}

// between reads the interval of the flags; it is empty for a full rebuild.
func (f *rebuildFlags) between() (stream.Range, error) {
	if f.from == "" && f.to == "" {
		return stream.Range{}, nil
	}
	if f.corrections {
		return stream.Range{}, errors.New("--corrections finds the interval itself: " +
			"leave --from and --to out")
	}
	from, err := time.Parse(time.RFC3339Nano, f.from)
	if err != nil {
		return stream.Range{}, fmt.Errorf("--from %q: want a time such as 2026-01-31T00:00:00Z", f.from)
	}
	to, err := time.Parse(time.RFC3339Nano, f.to)
	if err != nil {
		return stream.Range{}, fmt.Errorf("--to %q: want a time such as 2026-02-01T00:00:00Z", f.to)
	}
	if !to.After(from) {
		return stream.Range{}, errors.New("--to must be after --from")
	}
	return stream.Range{From: stream.MicrosOf(from), To: stream.MicrosOf(to)}, nil
}
