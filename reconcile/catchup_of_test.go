package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/source/file"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
	"github.com/tallystick/tallystick/testenv/oracle"
)

func progressOf(p stream.Partition, to string, w stream.Micros) stream.Progress {
	return stream.Progress{
		Partition: p, From: "1", To: to, Watermark: w, Identity: "lane " + p.String(),
	}
}

// TestCatchUpOfShards takes the highest position of each partition, as its source or, for released
// records, their numbers order them, and the lowest watermark.
func TestCatchUpOfShards(t *testing.T) {
	t.Parallel()
	left := stream.Partition{Side: stream.Left, Source: "l"}
	released := stream.Partition{Side: stream.Left, Source: reconcile.QuarantineSource}
	right := stream.Partition{Side: stream.Right, Source: "r"}
	lane := oracle.Slice{Partition: left}
	shards := []store.State{
		{Watermark: 7, Progress: []stream.Progress{
			progressOf(left, "9", 70), progressOf(released, "10", stream.Infinity),
			progressOf(right, "5", 8),
		}},
		{Watermark: 9, Progress: []stream.Progress{
			progressOf(left, "11", 90), progressOf(released, "9", stream.Infinity),
			progressOf(right, "5", 8),
		}},
	}
	sources := []reconcile.Source{&laneSource{lane: lane}}
	got, err := reconcile.CatchUpOf(t.Context(), sources, shards)
	if err != nil {
		t.Fatal(err)
	}
	want := []stream.Progress{
		progressOf(left, "11", 90), progressOf(released, "10", stream.Infinity),
		progressOf(right, "5", 8),
	}
	for i := range want {
		want[i].From = want[i].To
	}
	if got.Watermark != 7 || !slices.Equal(got.Partitions, want) {
		t.Errorf("the shards stand at %+v, want 7 and %+v", got, want)
	}
	unread := append(slices.Clone(shards), store.State{Watermark: stream.NegInfinity})
	got, err = reconcile.CatchUpOf(t.Context(), sources, unread)
	if err != nil || got.Watermark != stream.NegInfinity || !slices.Equal(got.Partitions, want) {
		t.Errorf("with a shard that has read nothing: %+v, %v", got, err)
	}
	_, err = reconcile.CatchUpOf(t.Context(), nil, shards)
	if err == nil || !strings.Contains(err.Error(), "left/l/0") {
		t.Errorf("without the source: %v, want an error that names its partition", err)
	}
}

// gone gives a lane of which some records are there no more; their positions are not given again.
func gone(p stream.Partition, positions ...string) *laneSource {
	s := &laneSource{lane: oracle.Slice{Partition: p}}
	for i, position := range positions {
		s.lane.Records = append(s.lane.Records, stream.Record{
			Position: position,
			Event: stream.Event{
				ID: position, Revision: 1, Key: "k", Time: stream.Micros(i), HasTime: true,
				Attributes: "{}",
			},
		})
	}
	return s
}

// catchUp runs a new candidate over the sources and gives where it ends.
func catchUp(
	t *testing.T, c *stream.CatchUp, name string, sources ...reconcile.Source,
) (stream.Micros, []stream.Progress, error) {
	t.Helper()
	_, st := openStore(t)
	generation := register(t, st, name, "v1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := reconcile.Run(ctx, reconcile.Config{
		Join: join.Config{
			Rule:     join.Rule{Version: "v1", Kind: join.Full, Provisional: join.Eager},
			MaxAhead: time.Hour, MaxSkew: time.Hour, MaxPairsPerKey: 100, CacheRows: 1000,
			ClosingsMax: 100,
		},
		Sources: sources, MaxEvents: 2, MaxDelay: time.Millisecond,
		CatchUp: c, CatchUpOnly: true,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Take: func(ctx context.Context) (reconcile.Shard, store.State, error) {
			h, err := st.Take(ctx, generation, 0, "test")
			if err != nil {
				return nil, store.State{}, err
			}
			return h, h.State, nil
		},
	})
	h, took := st.Take(t.Context(), generation, 0, "look")
	if took != nil {
		t.Fatal(took)
	}
	return h.Watermark, h.Progress, errors.Join(err, ctx.Err(), h.Leave(t.Context(), "done"))
}

// TestCatchUpGoesNoFurther: a position whose record is gone is passed all the same, one that has
// nothing at or after it is lost, and a partition that is new is read only afterwards.
func TestCatchUpGoesNoFurther(t *testing.T) {
	t.Parallel()
	left := stream.Partition{Side: stream.Left, Source: "l"}
	right := stream.Partition{Side: stream.Right, Source: "r"}
	fresh := stream.Partition{Side: stream.Right, Source: "x"}
	c := &stream.CatchUp{Watermark: 3, Partitions: []stream.Progress{
		progressOf(left, "4", 5), progressOf(right, "", stream.NegInfinity),
	}}
	watermark, progress, err := catchUp(t, c, "passes",
		gone(left, "1", "2", "3", "5", "6"), gone(right, "1"), gone(fresh, "1"))
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]string, len(progress))
	for i, p := range progress {
		ends[i] = p.To
	}
	if watermark != 3 || !slices.Equal(ends, []string{"4", "", ""}) {
		t.Errorf("the candidate ends at %s and %q, want 3 and 4 of the left", watermark, ends)
	}
	_, _, err = catchUp(t, c, "lacks", gone(left, "1", "2", "3"), gone(right))
	if !errors.Is(err, stream.ErrPositionLost) {
		t.Errorf("over a source that has lost records: %v, want ErrPositionLost", err)
	}
	c.Watermark = stream.NegInfinity
	watermark, progress, err = catchUp(t, c, "nothing", gone(left, "1", "4", "5"), gone(right))
	if err != nil || watermark != stream.NegInfinity || progress[0].To != "4" {
		t.Errorf("with nothing to release: %s, %+v, %v", watermark, progress, err)
	}
}

// TestCatchUpOfARangeOfTimes: a narrowed source ends at its position although the record there does
// not concern the range, and the candidate stands there.
func TestCatchUpOfARangeOfTimes(t *testing.T) {
	t.Parallel()
	const last = 13 // of an id that has no record in the range
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	if err := os.WriteFile(path, []byte(ndjson(facts[:last])), 0o600); err != nil {
		t.Fatal(err)
	}
	source := func() *file.Source {
		s, err := file.New(file.Config{Path: path, Mapping: factMapping()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := source()
	full, _ := readAll(t, whole, "")
	right := stream.Partition{Side: whole.Partition().Side.Other(), Source: "r"}
	c := &stream.CatchUp{Watermark: tenToEleven().To, Partitions: []stream.Progress{
		{
			Partition: whole.Partition(), To: full[last-1].Position, Identity: whole.Identity(),
			Watermark: tenToEleven().To,
		},
		{Partition: right, Watermark: tenToEleven().To},
	}}
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	narrowed := narrow(t, c, source())
	watermark, progress, err := catchUp(t, c, "range", narrowed[0], gone(right))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(progress, func(p stream.Progress) bool { return p.Partition != right })
	if watermark != c.Watermark || progress[at].To != full[last-1].Position {
		t.Errorf("the candidate ends at %s and %+v, want %s and %s", watermark, progress[at],
			c.Watermark, full[last-1].Position)
	}
}
