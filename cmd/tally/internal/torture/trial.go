package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/queries"
)

const (
	// leasesStopped is how many leases a stopped worker sleeps at least.
	leasesStopped = 3
	// runsMax bounds the workers of a trial: each ends by a fault, or reaches the end.
	runsMax = 3 * faultsPerSeed
	// retainEpochs is little, so that old epochs are purged while the trial lasts.
	retainEpochs = 8
	dropTimeout  = 30 * time.Second
)

// Exit codes of a worker that mean something here.
const (
	exitDone      = 0
	exitIntegrity = 3
	exitFenced    = 5
)

// trial is one seed: its schema, its files, and the workers that run over them.
type trial struct {
	*Config
	seed     uint64
	schema   string
	dir      string
	conn     *pgx.Conn
	setup    setup
	workload *workload
	// plan are the faults, numbered from 1; left are those that have not struck.
	plan []Fault
	left map[int]Fault
	// from is where each uncommitted epoch began to read, committed the newest one that is.
	from      map[int64][]string
	committed int64
	// unknown is the epoch whose commit was under way when its worker was killed, 0 for none.
	unknown int64
	// damages are what was done to stored rows so far, damaged the table of the last, if it is new.
	damages []string
	damaged string
	// asleep are the stopped workers.
	asleep []*sleeper
	result Result
}

// Result is what came of one seed.
type Result struct {
	Seed   uint64
	Faults []Fault
	// Struck are the faults that struck, with the epochs they did at.
	Struck []Fault
	// Rows and Digest are of the active rows at the end.
	Rows   int64
	Digest string
	Runs   int
	Epochs int64
	Took   time.Duration
	// Reached counts branches of recovery by name.
	Reached map[string]int64
	Err     error
	// Kept is the schema, where it was left.
	Kept string
}

// run is the whole life of a trial.
func (t *trial) run(ctx context.Context) (err error) {
	began := time.Now()
	defer func() { t.result.Took = time.Since(began) }()
	if t.dir, err = os.MkdirTemp("", "tally-torture-"); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(t.dir)) }()
	if err := t.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.cleanUp(ctx)) }()
	want, err := t.workload.expect(ctx, t.conn, &t.setup.rule)
	if err != nil {
		return err
	}
	err = t.workers(ctx)
	if err == nil {
		err = errors.Join(want.compare(ctx, t.conn, t.schema), t.count(ctx), t.verify(ctx))
	}
	if err != nil && len(t.damages) > 0 {
		err = fmt.Errorf("%w\n  damages: %q", err, t.damages)
	}
	return err
}

// prepare makes the schema and the files.
func (t *trial) prepare(ctx context.Context) error {
	t.setup = setupOf(t.seed, t.Rule)
	t.workload = generate(t.seed, &t.setup)
	for side, name := range []string{"left.ndjson", "right.ndjson"} {
		var text bytes.Buffer
		for _, r := range t.workload.sides[side] {
			text.Write(append(slices.Clip(r.line), '\n'))
		}
		if err := os.WriteFile(filepath.Join(t.dir, name), text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("write the records: %w", err)
		}
	}
	path := filepath.Join(t.dir, config.FileDefault)
	if err := os.WriteFile(path, []byte(t.setup.configuration(t.schema)), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	parsed, err := pgx.ParseConfig(t.Database)
	if err != nil {
		return errors.New("the database's connection string can't be read") // it may hold a password
	}
	parsed.DefaultQueryExecMode = pgx.QueryExecModeExec
	if err := migrations.Up(ctx, parsed, t.schema, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if t.conn, err = pgx.ConnectConfig(ctx, parsed); err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	return nil
}

// cleanUp drops the schema, also after an interrupt.
func (t *trial) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	defer func() { _ = t.conn.Close(ctx) }()
	if t.Keep {
		t.result.Kept = t.schema
		return nil
	}
	sql := queries.Render(queries.Torture("drop_schema"), t.schema)
	if _, err := t.conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("drop schema %s: %w", t.schema, err)
	}
	return nil
}

// workers runs one after the other until one has reached the end of the files.
func (t *trial) workers(ctx context.Context) error {
	defer func() {
		for _, s := range t.asleep {
			s.worker.end()
		}
	}()
	for finished := false; !finished; {
		if t.result.Runs++; t.result.Runs > runsMax {
			return fmt.Errorf("%d workers did not reach the end of the files", runsMax)
		}
		w, err := t.startWorker(ctx, t.left)
		if err != nil {
			return err
		}
		if finished, err = t.follow(ctx, w); err != nil {
			return err
		}
	}
	return t.awaken(ctx)
}

// follow watches a worker until it ends or is stopped, and tells whether it reached the end.
func (t *trial) follow(ctx context.Context, w *worker) (finished bool, err error) {
	defer func() {
		if err != nil {
			w.end()
		}
	}()
	var struck *Fault
	restarts := false
	for n := range w.notices {
		restarts = restarts || n.Restart
		f, err := t.hear(n)
		if err != nil {
			return false, err
		}
		if f == nil {
			continue
		}
		if f.Mode == Stop {
			t.asleep = append(t.asleep, &sleeper{worker: w, fault: *f, since: time.Now()})
			return false, nil
		}
		if f.Mode != Cut {
			struck = f
		}
	}
	code, err := w.wait()
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil && code != exitIntegrity {
		err = t.found(ctx)
		t.damaged = ""
	}
	switch {
	case err != nil:
		return false, err
	case code == exitIntegrity:
		return false, t.putBack(ctx, w)
	case struck == nil && code == exitDone:
		return !restarts, nil
	case struck != nil && code == struck.exits():
		if struck.Mode == Damage {
			err = t.damage(ctx, *struck)
		}
		return false, err
	}
	return false, fmt.Errorf("a worker ended with exit code %d after %v; %s", code, t.lastFault(),
		w.says())
}

// exits gives the exit code with which a worker ends that the fault struck.
func (f *Fault) exits() int {
	if f.Mode == Kill || f.Mode == Damage && f.Second {
		return killed
	}
	return exitDone
}

func (t *trial) lastFault() string {
	if len(t.result.Struck) == 0 {
		return "no fault"
	}
	f := t.result.Struck[len(t.result.Struck)-1]
	return fmt.Sprintf("%s at epoch %d", f, f.Epoch)
}

// hear takes a notice in and gives the fault that it tells of.
func (t *trial) hear(n notice) (*Fault, error) {
	switch {
	case n.Took != nil:
		return nil, t.tookOver(*n.Took)
	case n.Epoch > 0:
		return nil, t.begins(n)
	case n.Committed > 0:
		t.committed = n.Committed
		delete(t.from, n.Committed)
	case n.Stats != nil:
		t.result.Reached[foundCommitted] += n.Stats.Resolved
		t.result.Reached[foundAbsent] += n.Stats.Reacquired - n.Stats.Resolved
	case n.Fired > 0:
		f := t.plan[n.Fired-1]
		delete(t.left, n.Fired)
		f.Epoch = n.At
		t.result.Struck = append(t.result.Struck, f)
		if f.Mode == Kill && (f.Step == "K8" || f.Step == "K9") {
			t.unknown = n.At
		}
		return &f, nil
	}
	return nil, nil
}

// tookOver holds what a new worker found against what the last one left.
func (t *trial) tookOver(epoch int64) error {
	for _, s := range t.asleep {
		if !s.tookOver {
			s.tookOver, s.found = true, epoch
		}
	}
	if t.unknown > 0 {
		if epoch >= t.unknown {
			t.result.Reached[foundCommitted]++
		} else {
			t.result.Reached[foundAbsent]++
		}
		t.unknown = 0
	}
	if epoch < t.committed {
		return fmt.Errorf("epoch %d was committed, and the next worker found epoch %d", t.committed,
			epoch)
	}
	return t.wake()
}

// begins holds where an epoch begins to read against where it began before, if it was lost.
func (t *trial) begins(n notice) error {
	before, again := t.from[n.Epoch]
	t.from[n.Epoch] = n.From
	if !again {
		return nil
	}
	if !slices.Equal(before, n.From) {
		return fmt.Errorf("epoch %d begins to read at %v, and at %v when it was lost", n.Epoch, n.From,
			before)
	}
	t.result.Reached[readAgain]++
	return nil
}

// count reads what the runs came to from the schema.
func (t *trial) count(ctx context.Context) error {
	row := t.conn.QueryRow(ctx, queries.Render(queries.Torture("digest"), t.schema))
	if err := row.Scan(&t.result.Digest, &t.result.Rows); err != nil {
		return fmt.Errorf("digest the active rows: %w", err)
	}
	rows, err := t.conn.Query(ctx, queries.Render(queries.Torture("reached"), t.schema))
	if err != nil {
		return fmt.Errorf("count what was reached: %w", err)
	}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		t.result.Reached[name] += n
		return nil
	})
	if err != nil {
		return fmt.Errorf("count what was reached: %w", err)
	}
	t.result.Epochs = t.result.Reached["epochs"]
	records := len(t.workload.sides[0]) + len(t.workload.sides[1])
	if read := t.result.Reached["records read"]; read != int64(records) {
		return fmt.Errorf("the committed epochs read %d records, and the files hold %d", read, records)
	}
	return nil
}

// faultText lists the faults that struck.
func (r *Result) faultText() string {
	texts := make([]string, len(r.Struck))
	for i, f := range r.Struck {
		texts[i] = fmt.Sprintf("%s @%d", f, f.Epoch)
	}
	return strings.Join(texts, ", ")
}

func newTrial(c *Config, seed uint64) *trial {
	t := &trial{
		Config: c, seed: seed, schema: fmt.Sprintf("tally_torture_%s_%d", c.run, seed),
		plan: plan(seed, c.Filter), left: map[int]Fault{}, from: map[int64][]string{},
	}
	for i, f := range t.plan {
		t.left[i+1] = f
	}
	t.result = Result{Seed: seed, Faults: t.plan, Reached: map[string]int64{}}
	return t
}
