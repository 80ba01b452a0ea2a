package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/workload"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// run is one run end to end and what it took.
type run struct {
	schema    string
	config    *config.Config
	took      time.Duration
	epochs    int64
	wal       int64
	memory    uint64
	highwater int64 // the most rows that the buffer held
	// perEpoch are statements and round trips an epoch, over all epochs but the first.
	statements, roundTrips float64
	// cycles are the times from one commit to the next, transactions those from begin to commit.
	cycles, transactions []float64
	// bounds are how far each epoch read each side, in bytes.
	bounds [2]map[int64]int64
}

func (b *bench) path(side stream.Side) string {
	return filepath.Join(b.Dir, workload.TableName(side)+".ndjson")
}

// configuration is what tally init writes, over the generated files.
func (b *bench) configuration(schema string) (*config.Config, error) {
	template := config.InitTemplate()
	none := func(string) (string, bool) { return "", false }
	c, err := config.Parse(filepath.Join(b.Dir, config.FileDefault), []byte(template.Text()), none)
	if err != nil {
		return nil, fmt.Errorf("configuration of the benchmark: %w", err)
	}
	c.Database, c.Schema = config.Secret(b.Database), schema
	c.Epoch.MaxEvents, c.State.CacheRows = b.MaxEvents, b.CacheRows
	c.Retain.Epochs = 1 << 30 // the floor copies everything that was written
	return c, nil
}

// openStore opens the store of a schema, with what it sends counted.
func (b *bench) openStore(ctx context.Context, schema string, w *wire) (*store.Store, error) {
	return store.Open(ctx, store.Config{
		ConnString: b.Database, Schema: schema, MaxConns: 4, Configure: w.watch,
	})
}

// endToEnd reconciles the files in a schema of its own, which stays.
func (b *bench) endToEnd(
	ctx context.Context, what string, adapt func(context.Context, *run, *store.Store) error,
) (r *run, err error) {
	r = &run{bounds: [2]map[int64]int64{{}, {}}}
	if r.schema, err = b.createSchema(ctx, what); err != nil {
		return nil, err
	}
	if r.config, err = b.configuration(r.schema); err != nil {
		return nil, err
	}
	var w wire
	s, err := b.openStore(ctx, r.schema, &w)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := adapt(ctx, r, s); err != nil {
		return nil, err
	}
	b.db.settle(ctx)
	if err := b.measure(ctx, r, s, &w); err != nil {
		return nil, fmt.Errorf("reconcile in schema %s: %w", r.schema, err)
	}
	rows, err := b.db.Query(ctx, render("transactions", r.schema))
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	if r.transactions, err = pgx.CollectRows(rows, pgx.RowTo[float64]); err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	b.Logger.Info("end to end", "what", what, "seconds", r.took.Seconds(),
		"records_per_second", b.perSecond(r.took))
	return r, nil
}

// asIs changes nothing.
func asIs(context.Context, *run, *store.Store) error { return nil }

func (b *bench) measure(ctx context.Context, r *run, s *store.Store, w *wire) (err error) {
	stopProfile, err := b.profile()
	if err != nil {
		return err
	}
	defer stopProfile()
	before, err := b.db.wal(ctx)
	if err != nil {
		return err
	}
	memory := watchMemory()
	counter := newEpochCounter(r, w)
	began := time.Now()
	err = b.Reconcile(ctx, r.config, s, true, counter.add)
	r.took = time.Since(began)
	r.memory = memory()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	counter.finish()
	after, err := b.db.wal(ctx)
	r.wal = after - before
	return err
}

// profile goes on with the CPU profile for one run. Only one can be written, so it is of the first.
func (b *bench) profile() (stop func(), err error) {
	if b.Profile == nil {
		return func() {}, nil
	}
	if err := pprof.StartCPUProfile(b.Profile); err != nil {
		return nil, fmt.Errorf("start the CPU profile: %w", err)
	}
	b.Profile = nil
	return pprof.StopCPUProfile, nil
}

// epochCounter notes each commit of a run.
type epochCounter struct {
	run                    *run
	wire                   *wire
	last                   time.Time
	statements, roundTrips int64 // before the second epoch
}

func newEpochCounter(r *run, w *wire) *epochCounter { return &epochCounter{run: r, wire: w} }

func (e *epochCounter) add(d *stream.Delta) {
	now := time.Now()
	r := e.run
	if r.epochs == 0 {
		e.statements, e.roundTrips = e.wire.statements.Load(), e.wire.roundTrips.Load()
	} else {
		r.cycles = append(r.cycles, milliseconds(now.Sub(e.last)))
	}
	e.last = now
	r.epochs++
	r.highwater = max(r.highwater, d.Counts.Buffered)
	for _, p := range d.Progress {
		if position, ok := filePosition(p); ok {
			r.bounds[p.Side][d.Epoch] = position
		}
	}
}

func (e *epochCounter) finish() {
	if e.run.epochs < 2 {
		return
	}
	epochs := float64(e.run.epochs - 1)
	e.run.statements = float64(e.wire.statements.Load()-e.statements) / epochs
	e.run.roundTrips = float64(e.wire.roundTrips.Load()-e.roundTrips) / epochs
}

// watchMemory samples the memory that this process holds until the function it returns is called,
// which gives the peak in bytes.
func watchMemory() func() uint64 {
	const every = 50 * time.Millisecond
	runtime.GC()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		highest := uint64(0)
		for {
			highest = max(highest, memoryHeld())
			select {
			case <-time.After(every):
			case <-stop:
				peak <- highest
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-peak
	}
}

// memoryHeld is what the Go runtime has of the system and has not given back.
func memoryHeld() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

func (b *bench) perSecond(took time.Duration) float64 { return float64(b.records) / took.Seconds() }

// errDiffer reports that two contenders came to different results.
var errDiffer = errors.New("the contenders come to different results")
