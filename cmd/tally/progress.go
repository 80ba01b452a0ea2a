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

	mu     sync.Mutex
	epochs int64
	total  stream.Counts
	// shards is where each shard stands.
	shards map[int32]progressOf
}

// progressOf is where one shard stands.
type progressOf struct {
	epoch, buffered int64
	watermark       stream.Micros
}

func newProgress(a *app) *progress {
	return &progress{app: a, started: time.Now(), shards: map[int32]progressOf{}}
}

// add takes an epoch that was committed.
func (p *progress) add(shard int32, d *stream.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epochs++
	p.shards[shard] = progressOf{d.Epoch, d.Counts.Buffered, d.WatermarkAfter}
	c, t := &d.Counts, &p.total
	t.Read += c.Read
	t.Duplicate += c.Duplicate
	t.Stale += c.Stale
	t.Late += c.Late
	t.Quarantined += c.Quarantined
	t.Paired += c.Paired
	t.Final += c.Final
}

// together is where all shards stand: the newest epoch, what they buffer and the lowest watermark.
func (p *progress) together() (all progressOf) {
	all.watermark = stream.NegInfinity
	first := true
	for _, s := range p.shards {
		all.epoch, all.buffered = max(all.epoch, s.epoch), all.buffered+s.buffered
		if first || s.watermark < all.watermark {
			all.watermark, first = s.watermark, false
		}
	}
	return all
}

// rate is the records read a second since the start.
func (p *progress) rate() float64 {
	return float64(p.total.Read) / max(time.Since(p.started).Seconds(), 0.001)
}

// line is the state of things in one line.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.together()
	return fmt.Sprintf("epoch %d · %d records · %.0f/s · %d pairs · %d buffered · watermark %s",
		all.epoch, p.total.Read, p.rate(), p.total.Paired, all.buffered, shortTime(all.watermark))
}

// summary says what the run did.
func (p *progress) summary() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epochs == 0 {
		return "nothing new was read: no epoch"
	}
	t, all := &p.total, p.together()
	return fmt.Sprintf("read %d records in %d epochs (%.0f/s): %d paired, %d unmatched for good, "+
		"%d duplicate, %d stale, %d late, %d quarantined; %d still buffered, watermark %s",
		t.Read, p.epochs, p.rate(), t.Paired, t.Final, t.Duplicate, t.Stale, t.Late, t.Quarantined,
		all.buffered, shortTime(all.watermark))
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
	all := p.together()
	p.app.logger.Info("progress", "epoch", all.epoch, "records", p.total.Read,
		"rate", int64(p.rate()), "pairs", p.total.Paired, "buffered", all.buffered,
		"watermark", all.watermark.String())
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
