package reconcile_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// askingShard notes how many ids the newest Fetch asked for.
type askingShard struct {
	*store.Shard
	asked *int
}

func (s askingShard) Fetch(
	ctx context.Context, needs stream.Needs, watermark stream.Micros,
) (stream.Found, stream.Micros, error) {
	*s.asked = len(needs.IDs[stream.Left]) + len(needs.IDs[stream.Right])
	return s.Shard.Fetch(ctx, needs, watermark)
}

// TestRestartStopsLookingUpIDs: a worker that goes on from earlier results looks every new id up
// only until it has learnt which ids those results have.
func TestRestartStopsLookingUpIDs(t *testing.T) {
	t.Parallel()
	_, st := openStore(t)
	generation := register(t, st, "learn", "v1")
	if asked := runNewIDs(t, st, generation, 0, 50); asked != 0 {
		t.Errorf("a first run looked up %d ids in its last epoch", asked)
	}
	// The later epochs come after the pages of earlier results have been read.
	if asked := runNewIDs(t, st, generation, 50, 400); asked != 0 {
		t.Errorf("after a restart %d ids are still looked up in the last epoch", asked)
	}
}

// runNewIDs runs a left event an epoch, of the numbers given, and tells how many ids the last epoch
// asked for.
func runNewIDs(t *testing.T, st *store.Store, generation int32, from, to int) int {
	t.Helper()
	lane := oracle.Slice{Partition: stream.Partition{Side: stream.Left, Source: "left"}}
	for i := range to {
		lane.Records = append(lane.Records, stream.Record{
			Position: strconv.Itoa(i + 1),
			Event: stream.Event{
				ID: "e" + strconv.Itoa(i), Revision: 1, Key: "k", HasTime: true, Attributes: "{}",
				Time: stream.Micros(i) * stream.Micros(time.Hour.Microseconds()),
			},
		})
	}
	right := oracle.Slice{Partition: stream.Partition{Side: stream.Right, Source: "right"}}
	asked := -1
	err := reconcile.Run(t.Context(), reconcile.Config{
		Join: join.Config{
			Rule:     join.Rule{Version: "v1", Kind: join.LeftJoin, Provisional: join.Eager},
			MaxAhead: time.Hour, MaxSkew: time.Hour, MaxPairsPerKey: 10, CacheRows: 1000,
			ClosingsMax: 100,
		},
		Sources:   []reconcile.Source{&laneSource{lane: lane}, &laneSource{lane: right}},
		MaxEvents: 1, MaxDelay: time.Millisecond, UntilEnd: true,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
			shard, err := st.Take(ctx, generation, 0, "test")
			if err != nil {
				return nil, store.State{}, err
			}
			if shard.Epoch != int64(from) {
				t.Errorf("epoch %d, want %d", shard.Epoch, from)
			}
			return askingShard{shard, &asked}, shard.State, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}
