package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

const (
	// chunkRecords is how many records a feed reads at once, chunksAhead how many such reads it
	// may be ahead of the loop.
	chunkRecords = 1000
	chunksAhead  = 4
	// quietCheck is how often the loop looks for an epoch that is due although nothing arrives.
	quietCheck = 250 * time.Millisecond
)

// intake reads every source ahead, each in a goroutine of its own, and cuts batches from them.
type intake struct {
	feeds    []*feed
	maxDelay time.Duration
	untilEnd bool
	seal     bool
	// watchful is set where silence alone can move the watermark.
	watchful bool
	// catchUp is where a candidate's watermark is released, nil for ordinary work.
	catchUp *stream.CatchUp
	// wake holds a token when a feed may have something new.
	wake   chan struct{}
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// feed is one source and what was read of it ahead of the loop.
type feed struct {
	source Source
	ahead  chan chunk
	// records are what is left of the chunk at hand.
	records []stream.Record
	// to and identity are how far batches were cut; time is the newest event time seen.
	to, identity string
	next         string // identity at the end of the chunk at hand
	time         stream.Micros
	caughtUp     bool
	ended        bool
	// waits is true while others have to read before this feed can: see Source.Read.
	waits bool
	hold  hold
}

// chunk is what one Read gave.
type chunk struct {
	records  []stream.Record
	identity string
	caughtUp bool
	ended    bool
	waits    bool
	err      error
}

func openIntake(ctx context.Context, cfg Config, progress []stream.Progress) (*intake, error) {
	in := &intake{
		maxDelay: cfg.MaxDelay, untilEnd: cfg.UntilEnd, seal: cfg.Seal,
		watchful: cfg.Join.IdleAfter != [2]time.Duration{},
		catchUp:  cfg.CatchUp,
		wake:     make(chan struct{}, 1),
	}
	ctx, in.cancel = context.WithCancel(ctx)
	for _, source := range cfg.Sources {
		source = &outlasting{Source: source, logger: cfg.Logger}
		f := &feed{source: source, ahead: make(chan chunk, chunksAhead), time: stream.NegInfinity}
		if err := in.open(ctx, f, progress); err != nil {
			return nil, errors.Join(err, in.close())
		}
		in.feeds = append(in.feeds, f)
	}
	slices.SortFunc(in.feeds, func(a, b *feed) int {
		return a.source.Partition().Compare(b.source.Partition())
	})
	in.arrive()
	for _, f := range in.feeds {
		in.group.Go(func() { in.read(ctx, f) })
	}
	return in, nil
}

func (in *intake) open(ctx context.Context, f *feed, progress []stream.Progress) error {
	partition := f.source.Partition()
	for _, p := range progress {
		if p.Partition == partition {
			f.to, f.identity, f.time = p.To, p.Identity, p.Watermark
		}
	}
	if in.seal {
		f.source.Seal()
	}
	identity, err := f.source.Open(ctx, f.to, f.identity)
	if err != nil {
		return fmt.Errorf("open source %s: %w", partition, err)
	}
	if in.untilEnd {
		if err := f.source.Bound(ctx); err != nil {
			return fmt.Errorf("find the end of source %s: %w", partition, err)
		}
	}
	f.identity, f.next = identity, identity
	return f.holdAt(ctx, in.catchUp)
}

// close stops the readers and closes the sources.
func (in *intake) close() error {
	in.cancel()
	in.group.Wait()
	var errs []error
	for _, f := range in.feeds {
		errs = append(errs, f.source.Close())
	}
	return errors.Join(errs...)
}

// read keeps a feed filled until the context or a bounded source ends.
func (in *intake) read(ctx context.Context, f *feed) {
	told := struct{ caughtUp, waits bool }{}
	for {
		records, atEnd, err := f.source.Read(ctx, chunkRecords)
		c := chunk{
			records: records, identity: f.source.Identity(), caughtUp: atEnd,
			ended: atEnd && in.untilEnd && err == nil, err: err,
			waits: len(records) == 0 && !atEnd,
		}
		if len(records) > 0 || atEnd != told.caughtUp || c.waits != told.waits || c.ended ||
			err != nil {
			select {
			case f.ahead <- c:
			case <-ctx.Done():
				return
			}
			told.caughtUp, told.waits = atEnd, c.waits
			select {
			case in.wake <- struct{}{}:
			default:
			}
		}
		if c.ended || err != nil {
			return
		}
		if !atEnd {
			continue
		}
		select {
		case <-time.After(f.source.PollInterval()):
		case <-ctx.Done():
			return
		}
	}
}

// next cuts a batch of up to maxEvents records. Where the run has an end it waits for every source;
// otherwise for no record longer than maxDelay. The batch is empty when nothing came for a while, or
// at once where the loop has an epoch to run even so. watermark says where the loop stands.
func (in *intake) next(
	ctx context.Context, maxEvents int, watermark stream.Micros, now bool,
) (*stream.Batch, error) {
	b := in.emptyBatch()
	if in.catchesUp(b, watermark); b.Release != nil {
		return in.finish(b), nil
	}
	n := 0
	var deadline <-chan time.Time
	quiet := in.quiet(now)
	for {
		more, err := in.fill(ctx)
		if err != nil {
			return nil, err
		}
		if b.Held != nil && !in.holds() {
			return in.finish(b), nil
		}
		if more {
			n += in.take(b, maxEvents-n)
		}
		if n > 0 && deadline == nil && !in.untilEnd {
			deadline = time.After(in.maxDelay)
		}
		if n >= maxEvents || in.finished() {
			return in.finish(b), nil
		}
		if more {
			continue
		}
		select {
		case <-in.wake:
		case <-deadline:
			return in.finish(b), nil
		case <-quiet:
			if n == 0 {
				return in.finish(b), nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// quiet fires when an epoch may be due because of silence; never where silence means nothing.
func (in *intake) quiet(now bool) <-chan time.Time {
	if now {
		return time.After(0)
	}
	if !in.watchful || in.untilEnd {
		return nil
	}
	return time.After(quietCheck)
}

// fill takes what was read ahead and tells whether a record can be chosen: every feed must have
// one, or have none for now. A feed that waits for others counts as having none: the others may wait
// in turn for what this shard has not read of another source. So does one that has to wait until the
// others have caught up as well.
func (in *intake) fill(ctx context.Context) (bool, error) {
	for _, f := range in.feeds {
		if err := f.fill(ctx); err != nil {
			return false, fmt.Errorf("read source %s: %w", f.source.Partition(), err)
		}
	}
	in.arrive()
	ready, some := true, false
	for _, f := range in.feeds {
		if err := f.fallsShort(); err != nil {
			return false, err
		}
		some = some || len(f.records) > 0
		ready = ready &&
			(len(f.records) > 0 || f.ended || f.waits || f.hold.waits() || (f.caughtUp && !in.untilEnd))
	}
	return ready && some, nil
}

func (f *feed) fill(ctx context.Context) error {
	for len(f.records) == 0 && len(f.hold.records) == 0 && !f.ended {
		select {
		case c := <-f.ahead:
			if c.err != nil {
				return c.err
			}
			f.records, f.next = c.records, c.identity
			f.caughtUp, f.ended, f.waits = c.caughtUp, c.ended, c.waits
			if err := f.holdBack(ctx); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// take moves up to limit records into the batch, always from the feed whose event time is behind,
// until that feed must be filled again.
func (in *intake) take(b *stream.Batch, limit int) int {
	n := 0
	for n < limit {
		first, second := in.behind()
		if first < 0 {
			break
		}
		f := in.feeds[first]
		run := 0
		for run < len(f.records) && n+run < limit {
			if at := f.at(run); run > 0 && second >= 0 && at > in.feeds[second].at(0) {
				break
			}
			f.time = f.at(run)
			run++
		}
		part := &b.Parts[first]
		part.Records = append(part.Records, f.records[:run]...)
		f.to = f.records[run-1].Position
		f.records = f.records[run:]
		n += run
		if len(f.records) == 0 {
			f.identity = f.next
			if !f.ended {
				break
			}
		}
	}
	return n
}

// at is the event time of a record at hand; one without a time counts as being where the feed is.
func (f *feed) at(i int) stream.Micros {
	if e := &f.records[i].Event; f.records[i].Reason == "" && e.HasTime {
		return e.Time
	}
	return f.time
}

// behind gives the feeds with the lowest event times among those that have records, -1 for none.
func (in *intake) behind() (first, second int) {
	first, second = -1, -1
	for i, f := range in.feeds {
		switch {
		case len(f.records) == 0:
		case first < 0 || f.at(0) < in.feeds[first].at(0):
			first, second = i, first
		case second < 0 || f.at(0) < in.feeds[second].at(0):
			second = i
		}
	}
	return first, second
}

func (in *intake) emptyBatch() *stream.Batch {
	b := &stream.Batch{Parts: make([]stream.Part, len(in.feeds))}
	for i, f := range in.feeds {
		b.Parts[i].Partition = f.source.Partition()
	}
	return b
}

// finish says in the batch how far each partition was read.
func (in *intake) finish(b *stream.Batch) *stream.Batch {
	for i, f := range in.feeds {
		part := &b.Parts[i]
		part.To, part.Identity = f.to, f.identity
		if b.Held != nil || b.Release != nil {
			continue // neither a silence nor an end means anything yet
		}
		part.CaughtUp = f.caughtUp && len(f.records) == 0
		part.Sealed = in.seal && f.done()
	}
	return b
}

// done tells whether a bounded feed has been cut to its end.
func (f *feed) done() bool {
	return f.ended && len(f.records) == 0 && len(f.hold.records) == 0
}

// finished tells whether every feed is.
func (in *intake) finished() bool {
	return !slices.ContainsFunc(in.feeds, func(f *feed) bool { return !f.done() })
}

// QuarantineSource is the name under which released records are read again.
const QuarantineSource = join.QuarantineSource
