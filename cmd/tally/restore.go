package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// restoreFlags say what to go back to.
type restoreFlags struct {
	toEpoch     int64
	shard       int32
	fromArchive bool
}

func newRestoreCommand(a *app) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore --to-epoch N | --from-archive [--shard S]",
		Short: "Go back to an earlier epoch: offsets, watermark, buffer and results together",
		Long: "restore takes a shard back to what it was after epoch N, in one transaction. The epochs\n" +
			"since then stay on record as discarded, and views show what N left; result_history\n" +
			"shows each step back. The next tally run reads again what those epochs read, just as\n" +
			"they did, and compares its output with theirs; then it goes on.\n\n" +
			"N is an epoch of the view epochs that is committed and retained (retain.epochs); one\n" +
			"further back is refused, and the oldest possible one named. A shard that a run works\n" +
			"on is refused too: stop that run first.\n\n" +
			"--from-archive makes the shard what the newest archived snapshot says that is whole,\n" +
			"with --to-epoch N that of epoch N, whatever state the tables are in. A run does it by\n" +
			"itself when no retained epoch verifies.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.toEpoch < 0 || f.toEpoch == 0 && !f.fromArchive {
				return usageError(errors.New("--to-epoch: say the epoch to go back to; " +
					"the view epochs lists them"))
			}
			return a.restore(cmd.Context(), f)
		},
	}
	cmd.Flags().Int64Var(&f.toEpoch, "to-epoch", 0, "the epoch to go back to")
	cmd.Flags().BoolVar(&f.fromArchive, "from-archive", false, "go back to an archived snapshot")
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
	if f.fromArchive {
		return a.restoreArchive(ctx, c, s, serving.Generation, f)
	}
	err = s.RestoreTo(ctx, serving.Generation, f.shard, workerName(), f.toEpoch)
	if err != nil {
		return err
	}
	a.printf("shard %d is what it was after epoch %d; tally run goes on from there\n", f.shard,
		f.toEpoch)
	return nil
}
