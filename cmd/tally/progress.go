package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// How often progress is shown: as one line that is rewritten on a terminal, else in the log.
const (
	terminalEvery = 200 * time.Millisecond
	logEvery      = 10 * time.Second
)

// progress adds up what the epochs of a run did and shows it while it goes on.
type progress struct {
	app     *app
	started time.Time

	mu        sync.Mutex
	epochs    int64
	epoch     int64
	watermark stream.Micros
	total     stream.Counts
}

func newProgress(a *app) *progress {
	return &progress{app: a, started: time.Now(), watermark: stream.NegInfinity}
}

// add takes an epoch that was committed.
func (p *progress) add(d *stream.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epochs++
	p.epoch, p.watermark = d.Epoch, d.WatermarkAfter
	c, t := &d.Counts, &p.total
	t.Read += c.Read
	t.Duplicate += c.Duplicate
	t.Stale += c.Stale
	t.Late += c.Late
	t.Quarantined += c.Quarantined
	t.Paired += c.Paired
	t.Final += c.Final
	t.Buffered = c.Buffered
}

// rate is the records read a second since the start.
func (p *progress) rate() float64 {
	return float64(p.total.Read) / max(time.Since(p.started).Seconds(), 0.001)
}

// line is the state of things in one line.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("epoch %d · %d records · %.0f/s · %d pairs · %d buffered · watermark %s",
		p.epoch, p.total.Read, p.rate(), p.total.Paired, p.total.Buffered, shortTime(p.watermark))
}

// summary says what the run did.
func (p *progress) summary() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epochs == 0 {
		return "nothing new was read: no epoch"
	}
	t := &p.total
	return fmt.Sprintf("read %d records in %d epochs (%.0f/s): %d paired, %d unmatched for good, "+
		"%d duplicate, %d stale, %d late, %d quarantined; %d still buffered, watermark %s",
		t.Read, p.epochs, p.rate(), t.Paired, t.Final, t.Duplicate, t.Stale, t.Late, t.Quarantined,
		t.Buffered, shortTime(p.watermark))
}

// show shows progress on standard error until the function it returns is called.
func (p *progress) show(ctx context.Context) (stop func()) {
	every, write, wipe := logEvery, p.log, func() {}
	if file, ok := p.app.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		every = terminalEvery
		write = func() { rewrite(file, p.line()) }
		wipe = func() { rewrite(file, "") }
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				write()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
		wipe()
	}
}

func (p *progress) log() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.app.logger.Info("progress", "epoch", p.epoch, "records", p.total.Read,
		"rate", int64(p.rate()), "pairs", p.total.Paired, "buffered", p.total.Buffered,
		"watermark", p.watermark.String())
}

// rewrite replaces the terminal's line.
func rewrite(w io.Writer, line string) {
	const width = 110
	if n := width - len(line); n > 0 {
		line += strings.Repeat(" ", n)
	}
	fmt.Fprintf(w, "\r%s\r", line)
}

// shortTime leaves out the fraction of a second.
func shortTime(m stream.Micros) string {
	if !m.Finite() {
		return m.String()
	}
	return m.Time().Format("2006-01-02 15:04:05")
}
