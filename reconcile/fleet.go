package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// lookEvery is how often a fleet looks at the leases, at most; a lease of less than three times as
// long is looked at more often.
const lookEvery = time.Second

// pauseMax is how many looks a shard that failed is left alone, at most.
const pauseMax = 60

// FleetConfig is what a process runs with that works on several shards.
type FleetConfig struct {
	// Loop is what each shard runs with. Its Sources are read once for all shards, and its cache is
	// divided among them. Take, OnEpoch and the number of the shard are filled in for each.
	Loop Config
	// Shards are those to work on, of the Of that the generation has.
	Shards []int32
	Of     int32
	// Worker names this process to the others.
	Worker string
	Leases Leases
	// Own, when set, gives more sources, which one shard has for itself.
	Own func(shard int32) ([]Source, error)
	// OnEpoch, when set, is called after each commit, in the order of a shard's epochs.
	OnEpoch func(shard int32, d *stream.Delta)
	// Upkeep, when set, runs beside the loop of a shard while this process holds it.
	Upkeep func(ctx context.Context, shard int32)
	// Adapt, when set, changes what a shard is about to run with.
	Adapt func(*Config)
}

// RunFleet works on all shards that it can get, and shares them with other workers: it takes those
// whose lease is free, asks for more while it has fewer than its share, and hands over what others
// ask for. A shard that is fenced off, or fails for a reason that may pass, stops alone and is tried
// again. Any other failure stops the process, after the other shards have finished their epochs.
//
// It returns nil when the context ends. With Loop.UntilEnd it waits for the shards that others have
// and returns when each has been read to its end; a shard that another worker took over meanwhile,
// or that failed, is left at that, and its error returned in the end. Errors are those of Run.
func RunFleet(ctx context.Context, cfg FleetConfig) error {
	running, stop := context.WithCancel(ctx)
	f := &fleet{
		FleetConfig: cfg, members: map[int32]*member{}, ended: make(chan ended, len(cfg.Shards)),
	}
	for _, shard := range cfg.Shards {
		f.members[shard] = &member{}
	}
	for _, source := range cfg.Loop.Sources {
		f.hubs = append(f.hubs, newHub(source))
	}
	err := f.run(running)
	stop()
	err = errors.Join(err, f.settle())
	for _, h := range f.hubs {
		err = errors.Join(err, h.close(ctx))
	}
	return err
}

// fleet is the shards of one process. Its fields belong to the goroutine of RunFleet.
type fleet struct {
	FleetConfig
	hubs    []*hub
	members map[int32]*member
	ended   chan ended
	working int
	// slow is how many looks in a row were ended by statement_timeout.
	slow int
	// left are the errors of shards that a run until the end has given up.
	left error
}

// member is one shard and what this process does about it.
type member struct {
	works bool
	// done is true when a run until the end has nothing more to do here.
	done bool
	// told is true when the log has said that another worker has it.
	told bool
	// free is for how many looks it has been free, pause for how many it is left alone after so many
	// failures in a row.
	free, pause, failures int
}

// ended is how the run of a shard ended.
type ended struct {
	shard int32
	err   error
}

// run returns when all is done, the context ends or something cannot heal.
func (f *fleet) run(ctx context.Context) error {
	ticks := time.NewTicker(f.lookEvery())
	defer ticks.Stop()
	for {
		if err := f.forgive(f.look(ctx)); err != nil {
			return unlessStopped(ctx, err)
		}
		if f.done() {
			return f.left
		}
		select {
		case e := <-f.ended:
			if err := f.take(e); err != nil {
				return unlessStopped(ctx, err)
			}
		case <-ticks.C:
			f.tick()
		case <-ctx.Done():
			return nil
		}
	}
}

// settle waits for what still runs after it was stopped. That a shard is with another worker by now
// is no error any more, except to a run until the end that was to finish it.
func (f *fleet) settle() error {
	var errs []error
	for ; f.working > 0; f.working-- {
		e := <-f.ended
		if e.err != nil && !errors.Is(e.err, context.Canceled) && !errors.Is(e.err, ErrHandedOver) &&
			!errors.Is(e.err, store.ErrHeld) &&
			(f.Loop.UntilEnd || !errors.Is(e.err, store.ErrFenced)) {
			errs = append(errs, f.named(e))
		}
	}
	return errors.Join(errs...)
}

// forgive lets a look fail at statement_timeout a few times in a row: there is another one soon.
func (f *fleet) forgive(err error) error {
	if store.Classify(err) != store.TimedOut {
		f.slow = 0
		return err
	}
	if f.slow++; f.slow > timeoutsMax {
		return err
	}
	f.Loop.Logger.Warn("a look at the leases took longer than statement_timeout", "error", err)
	return nil
}

func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (f *fleet) done() bool {
	for _, m := range f.members {
		if !m.done {
			return false
		}
	}
	return true
}

// lookEvery is a third of a lease, or a second.
func (f *fleet) lookEvery() time.Duration {
	if every := f.Loop.LeaseFor / beatsPerLease; every > 0 {
		return min(every, lookEvery)
	}
	return lookEvery
}

// tick counts time, in looks: the clock of a worker says nothing.
func (f *fleet) tick() {
	for _, m := range f.members {
		m.pause = max(m.pause-1, 0)
		m.free++
	}
}

// look sees which shards there are to take or to ask for.
func (f *fleet) look(ctx context.Context) error {
	if !f.wants() {
		return nil
	}
	all, err := f.Leases.List(ctx)
	if err != nil {
		return err
	}
	var leases []store.Lease
	for _, l := range all {
		m := f.members[l.Shard]
		if m == nil || m.done {
			continue
		}
		switch {
		case m.works:
			l.Worker, l.Running = f.Worker, true
		case !l.Free() || m.pause > 0:
			m.free = 0
		}
		if !m.works && m.pause > 0 {
			continue
		}
		leases = append(leases, l)
	}
	looksPerLease := int(f.Loop.LeaseFor/f.lookEvery()) + 1
	p := balance(f.Worker, leases, func(shard int32) bool {
		return f.members[shard].free > looksPerLease
	})
	f.tell(leases)
	f.start(ctx, p.take)
	for _, l := range p.ask {
		if err := f.Leases.Ask(ctx, l.Shard, l.Worker); err != nil {
			return err
		}
	}
	return nil
}

// wants tells whether there is a shard that this process would work on and does not.
func (f *fleet) wants() bool {
	for _, m := range f.members {
		if !m.works && !m.done && m.pause == 0 {
			return true
		}
	}
	return false
}

// tell says once who has a shard that this process does not run.
func (f *fleet) tell(leases []store.Lease) {
	for _, l := range leases {
		if m := f.members[l.Shard]; l.Worker != f.Worker && !l.Free() && !m.told {
			m.told = true
			f.Loop.Logger.Info("another worker has the shard: it is taken over when that one leaves "+
				"it or its lease runs out", "shard", l.Shard, "worker", l.Worker,
				"lease_left", l.For.Round(time.Millisecond))
		}
	}
}

// start runs shards. Those that start when none runs begin to read together.
func (f *fleet) start(ctx context.Context, shards []int32) {
	together := f.working == 0
	var starting []func()
	for _, shard := range shards {
		m := f.members[shard]
		if m.works {
			continue
		}
		m.works, m.free = true, 0
		f.working++
		views := make([]*view, len(f.hubs))
		for i, h := range f.hubs {
			views[i] = h.view()
			if together {
				h.await(views[i])
			}
		}
		starting = append(starting, func() {
			err := f.work(ctx, shard, views)
			for _, v := range views {
				v.hub.arrive(v)
			}
			f.ended <- ended{shard, err}
		})
	}
	for _, work := range starting {
		go work()
	}
}

// work runs one shard.
func (f *fleet) work(ctx context.Context, shard int32, views []*view) error {
	cfg := f.Loop
	cfg.Join.Shard, cfg.Join.Shards = shard, f.Of
	cfg.Join.CacheRows /= len(f.Shards)
	if f.Of > 1 {
		cfg.Logger = cfg.Logger.With("shard", shard)
	}
	cfg.Sources = nil
	for _, v := range views {
		cfg.Sources = append(cfg.Sources, v)
	}
	if f.Own != nil {
		own, err := f.Own(shard)
		if err != nil {
			return err
		}
		cfg.Sources = append(cfg.Sources, own...)
	}
	cfg.Take = func(ctx context.Context) (Shard, store.State, error) {
		return f.Leases.Take(ctx, shard)
	}
	if f.FleetConfig.OnEpoch != nil {
		cfg.OnEpoch = func(d *stream.Delta) { f.FleetConfig.OnEpoch(shard, d) }
	}
	if f.Upkeep != nil {
		cfg.Upkeep = func(ctx context.Context) { f.Upkeep(ctx, shard) }
	}
	if f.Adapt != nil {
		f.Adapt(&cfg)
	}
	return Run(ctx, cfg)
}

// take takes note of how a shard ended; an error is one that stops the process.
func (f *fleet) take(e ended) error {
	m := f.members[e.shard]
	m.works, m.free, m.told = false, 0, false
	f.working--
	logger := f.Loop.Logger.With("shard", e.shard)
	failures := m.failures
	m.failures = 0
	switch {
	case e.err == nil:
		m.done = true
	case errors.Is(e.err, store.ErrHeld):
		// Somebody was faster.
	case errors.Is(e.err, ErrHandedOver):
		logger.Info("the shard was handed over")
	case f.Loop.UntilEnd && (passing(e.err) || errors.Is(e.err, store.ErrFenced)):
		m.done = true
		f.left = errors.Join(f.left, f.named(e))
	case errors.Is(e.err, store.ErrFenced):
		logger.Warn("another worker has taken the shard over; nothing of the epoch in flight was "+
			"written here", "error", e.err)
	case passing(e.err):
		m.failures = failures + 1
		m.pause = min(1<<min(failures, 10), pauseMax)
		logger.Error("the shard failed and is tried again", "failures", m.failures, "error", e.err)
	default:
		return f.named(e)
	}
	return nil
}

// passing tells whether what failed may succeed another time.
func passing(err error) bool {
	for _, lasting := range []error{stream.ErrPositionLost, stream.ErrUnusable, store.ErrDamaged} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	switch store.Classify(err) {
	case store.TimedOut, store.Retry, store.Unknown, store.DiskFull:
		return true
	}
	return false
}

func (f *fleet) named(e ended) error {
	if f.Of <= 1 {
		return e.err
	}
	return fmt.Errorf("shard %d: %w", e.shard, e.err)
}
