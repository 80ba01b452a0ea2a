package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/cmd/tally/internal/workload"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

const quarantineSource = reconcile.QuarantineSource

// appended is when the bytes of a file up to an end were about to be written.
type appended struct {
	end int64
	at  time.Time
}

// pacer appends lines to both files at a steady rate and remembers when.
type pacer struct {
	rate    int
	streams [2]*workload.Stream
	next    [2]workload.Event
	files   [2]*os.File
	sizes   [2]int64

	mutex   sync.Mutex
	waiting [2][]appended
	// latencies are in milliseconds, one for each event.
	latencies []float64
	// behind is how far the writing fell behind the rate at worst.
	behind time.Duration
}

// paced measures how long an event takes from being appended to its file until another connection
// sees the results of its epoch.
func (b *bench) paced(ctx context.Context) (err error) {
	if !b.wants(PartPaced) {
		return nil
	}
	r := &run{bounds: [2]map[int64]int64{{}, {}}}
	if r.schema, err = b.createSchema(ctx, "paced"); err != nil {
		return err
	}
	if r.config, err = b.configuration(r.schema); err != nil {
		return err
	}
	r.config.Epoch.MaxDelay = delayOf(b.MaxDelay)
	var w wire
	s, err := b.openStore(ctx, r.schema, &w)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := b.newPacer()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	b.db.settle(ctx)
	counter := newEpochCounter(r, &w)
	if err := b.pace(ctx, p, r, s, counter.add); err != nil {
		return fmt.Errorf("run at %d events a second: %w", b.Rate, err)
	}
	counter.finish()
	b.report.paced = &pacedFigures{run: r, latencies: p.latencies, behind: p.behind}
	return b.db.dropSchema(ctx, r.schema)
}

func (b *bench) newPacer() (p *pacer, err error) {
	c := b.workload()
	c.Events = int(float64(b.Rate) * b.PacedFor.Seconds())
	p = &pacer{rate: b.Rate}
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		p.streams[side] = workload.New(c, side)
		p.step(side)
		if p.files[side], err = os.Create(b.path(side)); err != nil {
			return nil, errors.Join(fmt.Errorf("make a file to append to: %w", err), p.close())
		}
	}
	return p, nil
}

func (p *pacer) close() error {
	var errs []error
	for _, f := range p.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// step draws the next event of a side; at the end it is one that never arrives.
func (p *pacer) step(side stream.Side) {
	event, more := p.streams[side].Next()
	if !more {
		event.Arrival = stream.Infinity
	}
	p.next[side] = event
}

// pace runs worker, writer and reader until all that was written is seen.
func (b *bench) pace(
	ctx context.Context, p *pacer, r *run, s *store.Store, onEpoch func(*stream.Delta),
) error {
	conn, err := pgx.Connect(ctx, b.Database)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	reader := &database{Conn: conn}
	if err := reader.do(ctx, "listen", r.schema); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worked := make(chan error, 1)
	go func() {
		defer cancel() // nobody would see what is written from then on
		worked <- b.Reconcile(ctx, r.config, s, false, onEpoch)
	}()
	written := make(chan error, 1)
	go func() { written <- p.write(ctx, b.PacedFor) }()
	err = p.watch(ctx, reader, render("positions", r.schema), written)
	cancel()
	return errors.Join(<-worked, err)
}

// write appends what is due every millisecond, in the order of arrival.
func (p *pacer) write(ctx context.Context, lasts time.Duration) error {
	began := time.Now()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	done, all := 0, int(lasts.Seconds()*float64(p.rate))
	for done < all {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		due := min(int(time.Since(began).Seconds()*float64(p.rate)), all) - done
		p.behind = max(p.behind, time.Duration(due)*time.Second/time.Duration(p.rate))
		n, err := p.append(due)
		if err != nil {
			return err
		}
		if n < due {
			return nil
		}
		done += n
	}
	return nil
}

// append writes the next n events, fewer at the end.
func (p *pacer) append(n int) (written int, err error) {
	var lines [2][]byte
	now := time.Now()
	p.mutex.Lock()
	for written < n {
		side := stream.Left
		if p.next[stream.Right].Arrival < p.next[stream.Left].Arrival {
			side = stream.Right
		}
		event := p.next[side]
		if event.Arrival == stream.Infinity {
			break
		}
		lines[side] = append(event.AppendJSON(lines[side]), '\n')
		p.waiting[side] = append(p.waiting[side],
			appended{p.sizes[side] + int64(len(lines[side])), now})
		p.step(side)
		written++
	}
	p.mutex.Unlock()
	for side, text := range lines {
		if len(text) == 0 {
			continue
		}
		if _, err := p.files[side].Write(text); err != nil {
			return written, fmt.Errorf("append to a source: %w", err)
		}
		p.sizes[side] += int64(len(text))
	}
	return written, nil
}

// watch looks after each notice which events have been seen, until all are.
func (p *pacer) watch(
	ctx context.Context, reader *database, positions string, written <-chan error,
) error {
	var wrote bool
	for {
		if err := p.look(ctx, reader, positions); err != nil {
			return err
		}
		select {
		case err := <-written:
			if err != nil {
				return err
			}
			wrote = true
		default:
		}
		if wrote && p.all() {
			return nil
		}
		if err := p.notice(ctx, reader); err != nil {
			return err
		}
	}
}

// notice waits for a commit, but not for ever: the last may have been before the last line.
func (p *pacer) notice(ctx context.Context, reader *database) error {
	const patience = 200 * time.Millisecond
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := reader.WaitForNotification(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

func (p *pacer) look(ctx context.Context, reader *database, positions string) error {
	rows, err := reader.Query(ctx, positions)
	if err != nil {
		return fmt.Errorf("look for results: %w", err)
	}
	type position struct {
		Side  string
		Bytes int64
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[position])
	if err != nil {
		return fmt.Errorf("look for results: %w", err)
	}
	now := time.Now()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, seen := range list {
		side, err := stream.ParseSide(seen.Side)
		if err != nil {
			return err
		}
		waiting := p.waiting[side]
		for len(waiting) > 0 && waiting[0].end <= seen.Bytes {
			p.latencies = append(p.latencies, milliseconds(now.Sub(waiting[0].at)))
			waiting = waiting[1:]
		}
		p.waiting[side] = waiting
	}
	return nil
}

func (p *pacer) all() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.waiting[stream.Left])+len(p.waiting[stream.Right]) == 0
}
