package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// restoreFlags say what to go back to.
type restoreFlags struct {
	toEpoch int64
	shard   int32
}

func newRestoreCommand(a *app) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore --to-epoch N [--shard S]",
		Short: "Go back to an earlier epoch: offsets, watermark, buffer and results together",
		Long: "restore takes a shard back to what it was after epoch N, in one transaction. The epochs\n" +
			"since then stay on record as discarded, and views show what N left; result_history\n" +
			"shows each step back. The next tally run reads again what those epochs read, just as\n" +
			"they did, and compares its output with theirs; then it goes on.\n\n" +
			"N is an epoch of the view epochs that is committed and retained (retain.epochs); one\n" +
			"further back is refused, and the oldest possible one named. A shard that a run works\n" +
			"on is refused too: stop that run first.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.toEpoch < 1 {
				return usageError(errors.New("--to-epoch: say the epoch to go back to; " +
					"the view epochs lists them"))
			}
			return a.restore(cmd.Context(), f)
		},
	}
	cmd.Flags().Int64Var(&f.toEpoch, "to-epoch", 0, "the epoch to go back to")
	cmd.Flags().Int32Var(&f.shard, "shard", 0, "the shard that goes back")
	return cmd
}

func (a *app) restore(ctx context.Context, f restoreFlags) error {
	s, c, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	serving, err := servingOf(ctx, s.Pool(), s.Schema(), c.Name)
	if err != nil {
		return err
	}
	if f.shard < 0 || f.shard >= serving.Shards {
		return usageError(fmt.Errorf("--shard %d: there are shards 0 to %d", f.shard,
			serving.Shards-1))
	}
	err = s.RestoreTo(ctx, serving.Generation, f.shard, workerName(), f.toEpoch)
	if err != nil {
		return err
	}
	a.printf("shard %d is what it was after epoch %d; tally run goes on from there\n", f.shard,
		f.toEpoch)
	return nil
}
