// Package reconcile is the loop of a worker: read a batch from every source, join it, commit the
// epoch, and begin again, with the next epoch read and joined while this one commits.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// Source gives the records of one partition in order. It is used by one goroutine at a time.
type Source interface {
	Partition() stream.Partition
	// Open starts after a position, empty for the beginning, and returns what the source now says
	// it is. identity is what it said when it stood there, empty where that is not known. A source
	// that cannot give what follows returns an error wrapping stream.ErrPositionLost.
	Open(ctx context.Context, position, identity string) (string, error)
	// Compare orders two positions that were read, empty being before all others.
	Compare(ctx context.Context, a, b string) (int, error)
	// Read gives up to limit records without waiting for new ones. atEnd tells that there are no
	// more for now, and for ever in a bounded source. Neither records nor atEnd means that others
	// who share the source have to read first.
	Read(ctx context.Context, limit int) (records []stream.Record, atEnd bool, err error)
	// Identity is what the source says it is at the last record read.
	Identity() string
	// PollInterval is how long to wait after the end before reading again.
	PollInterval() time.Duration
	// Bound, once it is open, fixes its end where it is now. Seal, before it is opened, adds that
	// nothing will ever follow.
	Bound(ctx context.Context) error
	Seal()
	Close() error
}

// Shard is the stored half of a shard, held by one attempt.
type Shard interface {
	Fetch(ctx context.Context, needs stream.Needs, watermark stream.Micros) (
		stream.Found, stream.Micros, error)
	Restore(ctx context.Context, depth store.Depth, begin func(store.State) store.Loader) (
		store.State, error)
	// CheckRest verifies what Restore leaves unread.
	CheckRest(ctx context.Context) error
	Spill(ctx context.Context, watermark stream.Micros) error
	ResultIDs(ctx context.Context, yield func(stream.Side, string)) error
	BufferNames(ctx context.Context, yield func(side stream.Side, id, key string)) error
	Encode(d *stream.Delta) *store.Epoch
	Commit(ctx context.Context, e *store.Epoch) error
	// Extend keeps the lease while nothing is committed and tells who asks for the shard.
	Extend(ctx context.Context) (requestedBy string, err error)
	Leave(ctx context.Context, outcome string) error
}

// Config is what a worker runs with.
type Config struct {
	Join    join.Config
	Sources []Source
	// Take takes the shard for a new attempt and gives the state it was left in.
	Take func(ctx context.Context) (Shard, store.State, error)
	// LeaseFor is how long the lease lasts that Take gives; it is extended three times as often.
	LeaseFor time.Duration
	// MaxEvents bounds an epoch's records; MaxDelay how long a record waits for its epoch.
	MaxEvents int
	MaxDelay  time.Duration
	// UntilEnd stops when every source is read to the end it has at the start. Seal, with it,
	// says that the sources are complete.
	UntilEnd, Seal bool
	// CatchUp, when set, makes the generation a candidate: up to the positions in it everything is
	// read with the low watermark held, then that is released at the one in it, and what follows is
	// ordinary work. An attempt sees by what is stored how far that has come.
	CatchUp *stream.CatchUp
	// CatchUpOnly stops when the low watermark has been released and stands there, without reading
	// anything past the positions in CatchUp.
	CatchUpOnly bool
	// LeftOpen are corrections of the base, of any shard, that an interval does not settle: what a
	// shard of the base has set aside by them, that of the candidate does not read. What it merges
	// would otherwise depend on events near the interval whose other results it leaves alone.
	LeftOpen []store.OpenCorrection
	Logger   *slog.Logger
	// OnEpoch, when set, is called after each commit, in order, by the goroutine that committed.
	OnEpoch func(*stream.Delta)
	// Upkeep, when set, runs beside the loop while the shard is held and verified.
	Upkeep func(ctx context.Context)
}

// timeoutsMax bounds how often in a row statement_timeout may end an epoch: that halves the largest
// epoch down to one event and leaves a few tries for a lock that is held for long. Before each try
// it waits timeoutPause longer than before the last.
const (
	timeoutsMax  = 25
	timeoutPause = 50 * time.Millisecond
)

// leaveTimeout bounds the last word to the store after the run was cancelled.
const leaveTimeout = 5 * time.Second

// Run reconciles one shard until the context ends (it then returns nil, after the epoch in flight),
// until the end that UntilEnd or CatchUpOnly gives it, or until something cannot heal. Its errors
// wrap store.ErrHeld, ErrHandedOver, store.ErrFenced, stream.ErrPositionLost or what the store or a
// source returned.
func Run(ctx context.Context, cfg Config) error {
	maxEvents, timeouts, depth := cfg.MaxEvents, 0, store.Quick
	cfg.Sources = leaveOut(cfg.Sources, cfg.LeftOpen, cfg.Join.Shard)
	for {
		w := &worker{Config: cfg, maxEvents: maxEvents, depth: depth}
		err := w.attempt(ctx)
		if errors.Is(err, store.ErrDamaged) && depth == store.Quick && ctx.Err() == nil {
			cfg.Logger.Error("stored rows turned out to be damaged, looking for an epoch that verifies",
				"error", err)
			depth = store.Thorough
			continue
		}
		depth = store.Quick
		if errors.Is(err, store.ErrWentBack) && ctx.Err() == nil {
			cfg.Logger.Warn("going on from the older epoch, if the sources still have what follows it",
				"error", err)
			continue
		}
		if store.Classify(err) != store.TimedOut {
			return err
		}
		if w.settled {
			timeouts = 0
		}
		if timeouts++; timeouts > timeoutsMax {
			return err
		}
		maxEvents = max(w.maxEvents/2, 1)
		cfg.Logger.Warn("a statement took longer than statement_timeout, going on with smaller epochs",
			"max_events", maxEvents, "error", err)
		select {
		case <-time.After(time.Duration(timeouts) * timeoutPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// worker is one attempt over the shard.
type worker struct {
	Config
	depth store.Depth
	// maxEvents is halved by a statement timeout and grows back.
	maxEvents int
	shard     Shard
	state     *join.State
	// spilled is true where the buffer was too large to be read into memory.
	spilled bool
	intake  *intake
	// rests are what was cut off batches that would have made too many pairs.
	rests []*stream.Batch
	// inFlight is the epoch being committed; its outcome arrives on committed.
	inFlight  *stream.Delta
	committed chan error
	// failed ends the wait for records when a commit has failed; settled is true after the first
	// that has not.
	failed     context.CancelFunc
	settled    bool
	background *background
}

func (w *worker) attempt(outer context.Context) (err error) {
	shard, _, err := w.Take(outer)
	if err != nil {
		return err
	}
	w.shard = shard
	ctx, held := w.hold(outer)
	defer func() {
		err = held.end(err)
		w.leave(outer, err)
	}()
	state, err := w.restore(ctx)
	if err != nil {
		return err
	}
	w.intake, err = openIntake(ctx, w.Config, state.Progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.intake.close()) }()
	w.committed = make(chan error, 1)
	running, failed := context.WithCancel(ctx)
	defer failed()
	w.failed = failed
	defer w.keepUp(running)()
	w.background = w.readOn(running, state.Epoch)
	defer func() { err = errors.Join(err, w.background.end()) }()
	err = w.replay(running, state.Replays)
	switch {
	case err == nil:
		err = w.epochs(running)
	case running.Err() != nil && errors.Is(err, running.Err()):
		err = nil // the next attempt replays the rest
	}
	err = errors.Join(err, w.settle())
	if (w.UntilEnd || w.CatchUpOnly) && err == nil && ctx.Err() == nil {
		w.background.begin() // no commit comes that it could be in the way of
		err = w.background.wait()
	}
	return err
}

// leave ends the attempt on record, also after the context has ended. Where that fails nothing is
// lost but time: the lease runs out.
func (w *worker) leave(ctx context.Context, cause error) {
	outcome := "done"
	switch {
	case errors.Is(cause, store.ErrFenced):
		outcome = "fenced"
	case errors.Is(cause, ErrHandedOver):
		outcome = store.HandedOver
	case ctx.Err() != nil && (cause == nil || errors.Is(cause, ctx.Err())):
		outcome = "stopped"
	case cause != nil:
		outcome = cause.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := w.shard.Leave(ctx, outcome); err != nil {
		w.Logger.Warn("the lease was not released, others take the shard when it has run out",
			"lease_for", w.LeaseFor, "error", err)
	}
}

// restore verifies what is stored and makes the state that the attempt goes on from. A buffer that
// fits into memory is read there, so that nothing need be looked up; of a larger one rows are looked
// up when needed.
func (w *worker) restore(ctx context.Context) (store.State, error) {
	defer pauseCollector()()
	stored, err := w.shard.Restore(ctx, w.depth, func(stored store.State) store.Loader {
		w.spilled = stored.Buffered > int64(w.Join.CacheRows)
		w.state = join.New(w.Join, join.Start{
			Epoch: stored.Epoch, Watermark: stored.Watermark,
			Buffered: stored.Buffered, Progress: stored.Progress, Spilled: w.spilled,
		})
		if w.spilled {
			return nil
		}
		return w.state.LoadRows
	})
	if len(stored.Damage) > 0 {
		w.tellDamage(&stored, err)
	}
	if err == nil && w.spilled {
		err = w.shard.Spill(ctx, stored.Watermark)
	}
	return stored, err
}

// tellDamage logs what did not verify, and what was done about it.
func (w *worker) tellDamage(stored *store.State, err error) {
	for _, d := range stored.Damage {
		w.Logger.Error("what is stored is damaged", "table", d.Table, "row", d.Row, "what", d.What)
	}
	if err == nil {
		w.Logger.Warn("went back to an epoch that verifies", "from_epoch", stored.RestoredFrom,
			"to_epoch", stored.RestoredTo, "to_replay", len(stored.Replays))
	}
}

// spill lets keys leave memory, now that there are more than it may hold. It can take a while the
// first time, since every row of the buffer is marked.
func (w *worker) spill(ctx context.Context) error {
	if err := w.settle(); err != nil {
		return err
	}
	w.Logger.Info("the state has outgrown state.cache_rows, marking the buffer for look-ups",
		"cache_rows", w.Join.CacheRows, "held", w.state.Held())
	if err := w.shard.Spill(ctx, w.state.Watermark()); err != nil {
		return err
	}
	w.state.Spill()
	return nil
}

// epochs runs epoch after epoch. It returns nil when the context ends or the sources do; a commit
// that fails ends the context and leaves its error to settle.
func (w *worker) epochs(ctx context.Context) error {
	for !w.done() {
		batch, err := w.next(ctx)
		if err == nil {
			err = w.epoch(ctx, batch, nil)
		}
		switch {
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// done tells whether all is read that this run is to read, and the watermark stands where it leads.
func (w *worker) done() bool {
	switch {
	case len(w.rests) > 0, !w.intake.released(w.state.Watermark()):
		return false
	case w.CatchUpOnly:
		return true
	}
	return w.intake.finished() && !w.state.Behind()
}

// next gives what was cut off a batch, the last cut first, or else a new batch.
func (w *worker) next(ctx context.Context) (*stream.Batch, error) {
	if last := len(w.rests) - 1; last >= 0 {
		batch := w.rests[last]
		w.rests = w.rests[:last]
		return batch, nil
	}
	// A watermark that is held lags behind nothing.
	behind := w.state.Behind() && !w.intake.holds()
	return w.intake.next(ctx, w.maxEvents, w.state.Watermark(), behind)
}

// epoch joins one batch, waits for the epoch before it, and starts its commit. A batch that would
// change nothing makes no epoch, unless it is what a discarded one read.
func (w *worker) epoch(
	ctx context.Context, batch *stream.Batch, recorded *store.Recorded,
) error {
	select {
	case seen := <-w.background.seen:
		w.state.Know(seen)
	default:
	}
	if w.state.MustSpill() {
		if err := w.spill(ctx); err != nil {
			return err
		}
	}
	// Needs and Step belong together: nothing may leave memory between them.
	needs := w.state.Needs(batch)
	found, clock, err := w.shard.Fetch(ctx, needs, w.state.Watermark())
	if err != nil {
		return err
	}
	if recorded == nil {
		if rest := w.state.Cut(batch, &found); rest != nil {
			w.rests = append(w.rests, rest)
			return w.epoch(ctx, batch, nil)
		}
		batch.Clock = clock
		if batch.Records() == 0 && !w.state.Moves(batch) {
			return nil
		}
	}
	delta := w.state.Step(batch, &found)
	epoch := w.shard.Encode(delta)
	if recorded != nil && epoch.Replays(recorded.Epoch, recorded.Output) {
		w.Logger.Error("the replay of an epoch gives other outputs than were recorded",
			"epoch", recorded.Epoch, "replayed_as", delta.Epoch)
	}
	before, err := w.outcome()
	if err != nil {
		return err
	}
	w.inFlight = delta
	// The epoch in flight is finished even when the run is being stopped.
	commit, done := outliving(ctx, commitGrace)
	go func() {
		defer done()
		err := w.shard.Commit(commit, epoch)
		switch {
		case err != nil:
			w.failed()
		case w.OnEpoch != nil:
			w.OnEpoch(delta)
		}
		w.committed <- err
	}()
	w.letGo(before) // only now: the server has work meanwhile
	return nil
}

// settle waits for the epoch in flight and lets go of what was kept for it.
func (w *worker) settle() error {
	delta, err := w.outcome()
	if err == nil {
		w.letGo(delta)
	}
	return err
}

// outcome waits for the epoch in flight and gives it, or nil when there is none.
func (w *worker) outcome() (*stream.Delta, error) {
	delta := w.inFlight
	if delta == nil {
		return nil, nil
	}
	w.inFlight = nil
	if err := <-w.committed; err != nil {
		return nil, fmt.Errorf("epoch %d: %w", delta.Epoch, err)
	}
	w.settled = true
	w.background.begin()
	w.maxEvents = min(w.maxEvents+w.maxEvents/8+1, w.MaxEvents)
	return delta, nil
}

// letGo drops what was kept in memory until an epoch was committed.
func (w *worker) letGo(committed *stream.Delta) {
	if committed != nil {
		w.state.Committed(committed.Epoch)
	}
}
