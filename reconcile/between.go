package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// EndingSource is a Source that can end earlier than it would.
type EndingSource interface {
	Source
	// EndAt, once it is open and until it is opened again, makes it end at a position that it has
	// given before; whatever stood there as a record then, does now.
	EndAt(position string) error
}

// SelectingSource is a Source that can find the records of some event times without reading all. It
// is asked once it is open and was told where to end.
type SelectingSource interface {
	EndingSource
	// Selects tells whether it can, which may depend on how it is configured.
	Selects() bool
	// Find yields every id that has a record with an event time in the range, perhaps more than
	// once, and perhaps ids that only have a bad one there.
	Find(ctx context.Context, r stream.Range, yield func(id string)) error
	// Select, until it is opened again, makes Read give the records of those ids and of others,
	// whatever their times, and of no further ids.
	Select(r stream.Range, others []string)
}

// Reading is what was read of a source that Between has narrowed.
type Reading struct {
	stream.Partition
	// Read counts the records that the source gave, Given those that concern the range.
	Read, Given int64
	// From is where it was first opened, To how far it has been read.
	From, To string
}

// Between narrows all sources of a reconciliation to a range of event times, and to what the
// positions of a catch-up leave behind them. Each then gives, in its order and with its positions,
// all good records of every id that has a record in the range in any source of the side: what
// counts of an id is its highest revision, and that may have another time or none. A source that
// cannot select them is read twice, for the ids and for the records; what is kept in memory are the
// ids.
//
// The result is in the order of sources. None of them needs a Bound: each ends by itself, where
// endOf says. One without a position in the catch-up gives nothing.
func Between(sources []Source, r stream.Range, catchUp *stream.CatchUp) ([]Source, error) {
	if r.From >= r.To {
		return nil, fmt.Errorf("read the event times from %s to %s: there are none", r.From, r.To)
	}
	sides := [2]*sideBetween{newSideBetween(r), newSideBetween(r)}
	narrowed := make([]Source, 0, len(sources))
	for _, source := range sources {
		partition := source.Partition()
		b := &between{Source: source, side: sides[partition.Side]}
		b.reading.Partition = partition
		b.side.members = append(b.side.members, b)
		narrowed = append(narrowed, b)
	}
	for i := range catchUp.Partitions {
		p := &catchUp.Partitions[i]
		at := slices.IndexFunc(sources, func(s Source) bool { return s.Partition() == p.Partition })
		switch {
		case at >= 0:
			b := narrowed[at].(*between)
			b.end, b.endIdentity = p.To, p.Identity
		case p.To != "":
			return nil, fmt.Errorf("read partition %s again: no source of this name is configured "+
				"any more; add it, or rebuild everything from what there is", p.Partition)
		}
	}
	return narrowed, nil
}

// Readings tells what was read so far of those sources that Between has given.
func Readings(sources []Source) []Reading {
	var all []Reading
	for _, source := range sources {
		if b, narrowed := source.(*between); narrowed {
			b.mu.Lock()
			all = append(all, b.reading)
			b.mu.Unlock()
		}
	}
	return all
}

// endOf gives the position where a source stands once it was read to its end, which is not that of
// its last record; false where it is, or where there is no fixed end.
func endOf(source Source) (position string, fixed bool) {
	for {
		switch s := source.(type) {
		case *outlasting:
			source = s.Source
		case *without:
			source = s.Source
		case *view:
			source = s.hub.source
		case *between:
			return s.end, true
		default:
			return "", false
		}
	}
}

// between is one source narrowed to a range. Other sources of its side use the same ids, so that
// the source is locked for what they need of it.
type between struct {
	Source
	side *sideBetween
	// end is where it ends, empty where it gives nothing; endIdentity what it was there.
	end, endIdentity string

	mu sync.Mutex
	// checked is true once the source was found to be what it was at its end.
	checked bool
	// opened is true from Open to Close; open while the source stands at position, which it was at
	// with identity.
	opened, open       bool
	position, identity string
	ended              bool
	reading            Reading
	// selects is true where the source itself leaves out what does not concern the range; it's asked
	// for the ids others only.
	selects bool
	others  []string
	// ids are those that this source has in the range, unless it selects and no other asks.
	ids map[string]struct{}
}

// Open starts after a position. A source that is not what it was where it should end is
// stream.ErrPositionLost.
func (b *between) Open(ctx context.Context, position, identity string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open, b.position, b.identity = false, position, identity
	b.ended = b.end == ""
	if b.ended {
		return identity, nil
	}
	if err := b.check(ctx); err != nil {
		return "", err
	}
	found, err := b.start(ctx, position, identity)
	if err != nil {
		return "", err
	}
	order, err := b.Source.Compare(ctx, position, b.end)
	if err != nil {
		return "", err
	}
	b.identity, b.opened, b.open, b.ended = found, true, !b.selects, order >= 0
	if b.reading.Read == 0 {
		b.reading.From, b.reading.To = position, position
	}
	return found, nil
}

// check opens the source where it should end, which says whether it has what lies before.
func (b *between) check(ctx context.Context) error {
	if b.checked {
		return nil
	}
	if _, err := b.Source.Open(ctx, b.end, b.endIdentity); err != nil {
		return fmt.Errorf("look at where it stood, %q: %w", b.end, err)
	}
	b.checked = true
	return nil
}

// start opens the source with its end.
func (b *between) start(ctx context.Context, position, identity string) (string, error) {
	found, err := b.Source.Open(ctx, position, identity)
	if err != nil {
		return "", err
	}
	if source, ends := b.Source.(EndingSource); ends {
		err = source.EndAt(b.end)
	}
	return found, err
}

// Read gives up to limit records of the ids that have one in the range.
func (b *between) Read(
	ctx context.Context, limit int,
) (records []stream.Record, atEnd bool, err error) {
	if err := b.side.find(ctx); err != nil {
		return nil, false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.reopen(ctx); err != nil {
		return nil, false, err
	}
	for !b.ended && len(records) == 0 {
		b.open = false // until the read has succeeded
		read, ended, err := b.read(ctx, limit)
		if err != nil {
			return nil, false, err
		}
		b.open = true
		for i := range read {
			if read[i].Reason == "" && (b.selects || b.side.has(read[i].Event.ID)) {
				records = append(records, read[i])
			}
		}
		b.account(read, len(records), ended)
		if len(read) == 0 && !ended {
			return nil, false, nil
		}
	}
	return records, b.ended, nil
}

// reopen opens the source again where it stood, if the search for ids took it elsewhere.
func (b *between) reopen(ctx context.Context) error {
	if b.open || b.ended {
		return nil
	}
	if _, err := b.start(ctx, b.position, b.identity); err != nil {
		return fmt.Errorf("open it again: %w", err)
	}
	if b.selects {
		b.Source.(SelectingSource).Select(b.side.Range, b.others)
	}
	b.open = true
	return nil
}

// read gives what the source has next, up to where it ends.
func (b *between) read(
	ctx context.Context, limit int,
) (records []stream.Record, ended bool, err error) {
	records, ended, err = b.Source.Read(ctx, limit)
	for err == nil && len(records) > 0 {
		var order int
		last := len(records) - 1
		if order, err = b.Source.Compare(ctx, records[last].Position, b.end); order <= 0 {
			return records, ended || order == 0, err
		}
		records, ended = records[:last], true
	}
	return records, ended, err
}

func (b *between) account(read []stream.Record, given int, ended bool) {
	if n := len(read); n > 0 {
		b.position = read[n-1].Position
	}
	if b.ended = ended; ended {
		b.reading.To = b.end
	} else {
		b.reading.To = b.position
	}
	b.identity = b.Source.Identity()
	b.reading.Read += int64(len(read))
	b.reading.Given += int64(given)
}

// Compare is the source's.
func (b *between) Compare(ctx context.Context, a, c string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Source.Compare(ctx, a, c)
}

// Identity is what the source said it was at the last record that was read.
func (b *between) Identity() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.identity
}

// Bound does nothing: the end is fixed.
func (b *between) Bound(context.Context) error { return nil }

// Seal does nothing: the end was read before.
func (b *between) Seal() {}

// Close closes the source, which can be opened again.
func (b *between) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened, b.open = false, false
	return b.Source.Close()
}

// find learns which ids of the source have a record in the range. One that selects is not asked for
// them when nobody else needs them.
func (b *between) find(ctx context.Context, alone bool) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	defer func() {
		if !b.opened {
			err = errors.Join(err, b.Source.Close())
		}
	}()
	if err := b.check(ctx); err != nil {
		return err
	}
	if _, err := b.start(ctx, "", ""); err != nil {
		return err
	}
	b.ids = map[string]struct{}{}
	if source, can := b.Source.(SelectingSource); can && source.Selects() {
		b.selects = true
		if alone {
			return nil
		}
		return source.Find(ctx, b.side.Range, func(id string) { b.ids[id] = struct{}{} })
	}
	return b.scan(ctx)
}

// scan reads everything for the ids.
func (b *between) scan(ctx context.Context) error {
	for ended := false; !ended; {
		var records []stream.Record
		var err error
		if records, ended, err = b.read(ctx, chunkRecords); err != nil {
			return err
		}
		for i := range records {
			b.side.note(b.ids, &records[i])
		}
	}
	return nil
}
