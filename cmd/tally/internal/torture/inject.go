package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

const (
	workerConns    = 4
	workerRetryFor = 30 * time.Second
)

// statements are those in or after which the steps lie that are statements.
var statements = map[Step]struct {
	name, second string
	done         bool
}{
	"K0":  {"begin", "", false},
	"K1":  {"epoch_fence", "", true},
	"K3":  {"epoch_buffer_copy", "", true},
	"K4":  {"epoch_match_copy", "epoch_upsert", true},
	"K5":  {"epoch_transition_copy", "", true},
	"K6":  {"epoch_offsets", "", true},
	"K7":  {"epoch_manifest", "", true},
	"K8":  {"commit", "", false},
	"K9":  {"commit", "", false},
	"K10": {"commit", "", true},
	"K12": {"purge_mark", "purge_step", true},
}

// Injector lets the faults of a plan strike in the process that it runs in.
type Injector struct {
	lease  time.Duration
	schema string
	wire   wire
	// stop cancels the run.
	stop context.CancelFunc

	mu      sync.Mutex
	pending map[int]Fault
	out     io.Writer
	// encoded and committed are the newest epochs that are, began the one that the worker found.
	encoded, committed, began int64
}

// NewInjector gives an injector for the faults, by their number in the plan, that writes what
// happens to out. stop cancels the run.
func NewInjector(
	faults map[int]Fault, lease time.Duration, out io.Writer, stop context.CancelFunc,
) *Injector {
	return &Injector{lease: lease, stop: stop, pending: maps.Clone(faults), out: out}
}

// Store puts the injector between a run and its store.
func (in *Injector) Store(c *store.Config) {
	in.schema = c.Schema
	c.LeaseFor, c.RetryFor, c.MaxConns = in.lease, workerRetryFor, workerConns
	c.OnStep = in.onStep
	c.Configure = func(pool *pgxpool.Config) {
		// The transaction of a stopped worker holds the shard's row; the server ends it by then.
		idle := fmt.Sprintf("%dms", (2 * in.lease).Milliseconds())
		pool.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = idle
		pool.ConnConfig.AfterNetConnect = in.wire.wrap
	}
}

// Loop puts the injector between the loop and its shard.
func (in *Injector) Loop(c *reconcile.Config) {
	take, onEpoch := c.Take, c.OnEpoch
	c.Take = func(ctx context.Context) (reconcile.Shard, store.State, error) {
		shard, state, err := take(ctx)
		if err != nil {
			return nil, state, err
		}
		in.took(state.Epoch)
		return &tappedShard{Shard: shard, injector: in}, state, nil
	}
	c.OnEpoch = func(d *stream.Delta) {
		if onEpoch != nil {
			onEpoch(d)
		}
		in.acknowledged(d.Epoch)
	}
}

func (in *Injector) took(epoch int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.encoded, in.committed, in.began = epoch, epoch, epoch
	in.tell(notice{Took: &epoch})
}

// acknowledged is K11, where the loop has done with an epoch; damage waits for this point too.
func (in *Injector) acknowledged(epoch int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.committed = epoch
	in.tell(notice{Committed: epoch})
	for id, f := range in.inOrder() {
		if f.Epoch <= epoch && (f.Step == "K11" || f.Mode == Damage) {
			in.strikeIdle(id, f, epoch)
			return
		}
		// A worker purges when it begins, and then not again for longer than it lives here.
		if f.Epoch <= epoch && f.Step == "K12" && in.began < f.Epoch {
			in.tell(notice{Restart: true})
			in.stop()
			return
		}
	}
}

// fetching is K2: what the sources gave is read, and the epoch has not begun.
func (in *Injector) fetching() {
	in.mu.Lock()
	defer in.mu.Unlock()
	epoch := in.encoded + 1
	for id, f := range in.inOrder() {
		if f.Step != "K2" || f.Epoch > epoch {
			continue
		}
		if f.Mode == Cut {
			in.wire.arm(in.text("clock"), whenOf(f), in.cutter(id, epoch))
		} else {
			in.strike(id, f, epoch)
		}
		return
	}
}

// onStep is told of every statement of what is written.
func (in *Injector) onStep(ctx context.Context, name string, done bool) error {
	epoch, inEpoch := ctx.Value(epochKey{}).(int64)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !inEpoch {
		epoch = in.committed
	}
	for id, f := range in.inOrder() {
		// A purge belongs to no epoch; a worker begins with one.
		if inEpoch == (f.Step == "K12") || inEpoch && f.Epoch > epoch || !isAt(f, name) {
			continue
		}
		switch strikes := statements[f.Step].done; {
		case f.Step == "K8" || f.Step == "K9" || f.Mode == Cut && f.Step != "K10":
			if !done {
				in.wire.arm(in.text(name), whenOf(f), in.onWire(id, f, epoch))
			}
			return nil
		case done == strikes && f.Step == "K10":
			in.strikeIdle(id, f, epoch)
			return nil
		case done == strikes:
			in.strike(id, f, epoch)
			return nil
		}
	}
	return nil
}

// inOrder gives the faults that have not struck, in the order of the plan.
func (in *Injector) inOrder() iter.Seq2[int, Fault] {
	return func(yield func(int, Fault) bool) {
		for _, id := range slices.Sorted(maps.Keys(in.pending)) {
			if !yield(id, in.pending[id]) {
				return
			}
		}
	}
}

// isAt tells whether a statement is that of a fault.
func isAt(f Fault, name string) bool {
	at, ok := statements[f.Step]
	if f.Second && at.second != "" {
		return name == at.second
	}
	return ok && name == at.name
}

// text is how a statement is found in what is sent to the server.
func (in *Injector) text(name string) string {
	switch name {
	case "begin", "commit":
		return "\x00" + name + "\x00"
	}
	return queries.Render(queries.Engine(name), in.schema)
}

// whenOf says where in the exchange of one message with the server a fault strikes.
func whenOf(f Fault) when {
	switch {
	case f.Step == "K9":
		return afterReply
	case f.Second:
		return afterSend
	}
	return beforeSend
}

// onWire gives what happens when the message is at the place that was armed. It tells whether the
// connection is cut then.
func (in *Injector) onWire(id int, f Fault, epoch int64) func() bool {
	if f.Mode == Cut {
		return in.cutter(id, epoch)
	}
	return func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.strike(id, f, epoch)
		return f.Step == "K9" // a reply that was waited for is lost
	}
}

func (in *Injector) cutter(id int, epoch int64) func() bool {
	return func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.fired(id, epoch)
		return true
	}
}

// strikeIdle strikes where no statement is under way; a cut is then one of all connections.
func (in *Injector) strikeIdle(id int, f Fault, epoch int64) {
	if f.Mode == Cut {
		in.fired(id, epoch)
		in.wire.cutAll()
		return
	}
	in.strike(id, f, epoch)
}

// strike does to this process what the fault says. The mutex is held.
func (in *Injector) strike(id int, f Fault, epoch int64) {
	in.fired(id, epoch)
	switch {
	case f.Mode == Kill || f.Mode == Damage && f.Second:
		killSelf()
	case f.Mode == Stop:
		clear(in.pending) // the one who takes over has them
		stopSelf()
	default:
		in.stop()
	}
}

func (in *Injector) fired(id int, epoch int64) {
	delete(in.pending, id)
	in.tell(notice{Fired: id, At: epoch})
}

// tell writes a line to the lab. Where the lab is gone nobody misses it.
func (in *Injector) tell(n notice) {
	line, err := json.Marshal(n)
	if err != nil {
		panic(fmt.Sprintf("a notice of numbers and strings is no JSON: %v", err))
	}
	_, _ = in.out.Write(append(line, '\n'))
}

// epochKey is where a commit's context has the number of its epoch.
type epochKey struct{}

// tappedShard tells the injector what the loop does with its shard.
type tappedShard struct {
	reconcile.Shard
	injector *Injector
	// numbers are the epochs that were encoded and not committed yet.
	numbers sync.Map
}

// Restore may go back to an earlier epoch. What the loop would check beside its first epochs is
// checked at once, so that each start finds what was damaged before it, also one that is killed soon.
func (s *tappedShard) Restore(
	ctx context.Context, depth store.Depth, begin func(store.State) store.Loader,
) (store.State, error) {
	state, err := s.Shard.Restore(ctx, depth, begin)
	if err == nil && len(state.Damage) == 0 {
		err = s.CheckRest(ctx)
	}
	if err == nil {
		s.injector.mu.Lock()
		s.injector.encoded, s.injector.committed = state.Epoch, state.Epoch
		s.injector.mu.Unlock()
	}
	return state, err
}

func (s *tappedShard) Fetch(
	ctx context.Context, needs stream.Needs, watermark stream.Micros,
) (stream.Found, stream.Micros, error) {
	s.injector.fetching()
	return s.Shard.Fetch(ctx, needs, watermark)
}

func (s *tappedShard) Encode(d *stream.Delta) *store.Epoch {
	e := s.Shard.Encode(d)
	s.numbers.Store(e, d.Epoch)
	n := notice{Epoch: d.Epoch}
	for _, p := range d.Progress {
		n.From = append(n.From, p.Partition.String()+" "+p.From)
	}
	in := s.injector
	in.mu.Lock()
	defer in.mu.Unlock()
	in.encoded = d.Epoch
	in.tell(n)
	return e
}

func (s *tappedShard) Commit(ctx context.Context, e *store.Epoch) error {
	if number, ok := s.numbers.LoadAndDelete(e); ok {
		ctx = context.WithValue(ctx, epochKey{}, number)
	}
	return s.Shard.Commit(ctx, e)
}

func (s *tappedShard) Leave(ctx context.Context, outcome string) error {
	if counted, ok := s.Shard.(interface{ Stats() store.Stats }); ok {
		stats := counted.Stats()
		s.injector.mu.Lock()
		s.injector.tell(notice{Stats: &stats})
		s.injector.mu.Unlock()
	}
	return s.Shard.Leave(ctx, outcome)
}
