package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

const (
	// tailBytes of each file are kept back for the run after the restart.
	tailBytes = 1 << 18
	// heldFor is how long events wait in the part restart: for all of it.
	heldFor = config.Duration(10 * 365 * 24 * time.Hour)
)

// restartFigures are those of the part restart.
type restartFigures struct {
	// buffered counts the rows that waited, results those that had a live member.
	buffered int64
	// took holds, for each restart, the time from its start to its first commit.
	took []float64
}

// restart fills the buffer with all events, since none of them is ever so old that it leaves, and
// measures how long a worker takes from its start to its first commit: it takes the shard, verifies
// and loads what is stored, opens the sources and commits an epoch. Waiting for a lease to run out
// is not part of it.
func (b *bench) restart(ctx context.Context) (err error) {
	if !b.wants(PartRestart) {
		return nil
	}
	schema, err := b.createSchema(ctx, "restart")
	if err != nil {
		return err
	}
	c, err := b.configuration(schema)
	if err != nil {
		return err
	}
	var w wire
	s, err := b.openStore(ctx, schema, &w)
	if err != nil {
		return err
	}
	defer s.Close()
	c.Left.OutOfOrderness, c.Right.OutOfOrderness = heldFor, heldFor
	var tails [2]tail
	for side := range tails {
		if tails[side], err = b.cutTail(stream.Side(side), b.Rounds); err != nil {
			return err
		}
	}
	c.Left.Source[0].Path, c.Right.Source[0].Path = tails[0].path, tails[1].path
	b.report.restart = &restartFigures{}
	for round := range b.Rounds + 1 {
		took, err := b.firstCommit(ctx, c, s)
		if err != nil {
			return err
		}
		if round > 0 {
			b.report.restart.took = append(b.report.restart.took, took)
		}
		for side := range tails {
			if err := tails[side].append(); err != nil {
				return err
			}
		}
	}
	return b.db.dropSchema(ctx, schema)
}

// firstCommit reconciles to the end of the files and gives the time to the first commit.
func (b *bench) firstCommit(
	ctx context.Context, c *config.Config, s *store.Store,
) (milli float64, err error) {
	debug.FreeOSMemory()
	b.db.settle(ctx)
	began := time.Now()
	err = b.Reconcile(ctx, c, s, true, func(d *stream.Delta) {
		if milli == 0 {
			milli = milliseconds(time.Since(began))
		}
		b.report.restart.buffered = d.Counts.Buffered
	})
	b.Logger.Info("restart", "first_commit_ms", milli, "buffered", b.report.restart.buffered)
	return milli, err
}

// tail is the end of a file that is given out in parts.
type tail struct {
	path  string
	parts [][]byte
}

// cutTail copies a side's file without its end, whose lines are kept in as many parts as asked for.
func (b *bench) cutTail(side stream.Side, parts int) (tail, error) {
	all, err := os.ReadFile(b.path(side))
	if err != nil {
		return tail{}, fmt.Errorf("read the workload: %w", err)
	}
	t := tail{path: filepath.Join(b.Dir, "restart-"+side.String()+".ndjson")}
	share := min(tailBytes, len(all)/2) / parts
	for range parts {
		at := len(all) - share
		for at > 0 && all[at-1] != '\n' {
			at--
		}
		t.parts = append(t.parts, all[at:])
		all = all[:at]
	}
	if err := os.WriteFile(t.path, all, 0o600); err != nil {
		return tail{}, fmt.Errorf("write the workload: %w", err)
	}
	return t, nil
}

// append gives the next part out.
func (t *tail) append() (err error) {
	if len(t.parts) == 0 {
		return nil
	}
	file, err := os.OpenFile(t.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("append to the workload: %w", err)
	}
	last := len(t.parts) - 1
	_, err = file.Write(t.parts[last])
	t.parts = t.parts[:last]
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
