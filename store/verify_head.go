package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// windowTransitions bounds how many transitions a start reads again; those of the newest epoch are
// read in any case.
const windowTransitions = 10_000

// retainDefault is how many epochs are retained where nothing else is said, retainMin the fewest.
const (
	retainDefault = 100
	retainMin     = 2
)

// query runs one statement and gives its rows. It may run the statement again after it gave some:
// reset comes before each run.
type query func(ctx context.Context, s statement, reset func(), row func(v [][]byte)) error

// storedOffset is a row of source_offset.
type storedOffset struct {
	stream.Progress
	epoch int64
}

// head is what is known of a shard before its rows are read: what must agree at a glance.
type head struct {
	shard *Shard
	query query
	// found is what did not.
	found findings
	// strict looks at discarded epochs as well, which no state depends on.
	strict bool
	known  known

	epoch, token int64
	watermark    stream.Micros
	// tokenMax is the highest token of an attempt.
	tokenMax            int64
	shards, shardsFound int64
	hasShard            bool
	// purged is the oldest epoch whose buffer rows are all kept; 0 when every one's are.
	purged int64

	offsets []storedOffset
	// expected is what the manifests say of them.
	expected map[stream.Partition]storedOffset
	*history
	// chain leads to the newest manifest; it is empty before the first.
	chain []*storedManifest
}

// readHead reads the head; retain is how many manifests of the chain, 0 for all.
func readHead(ctx context.Context, h *Shard, q query, retain int64) (*head, error) {
	d := &head{shard: h, query: q}
	if err := d.readShard(ctx); err != nil {
		return nil, fmt.Errorf("read the shard's row: %w", err)
	}
	err := q(ctx, h.statement("verify_offsets"), func() { d.offsets = nil }, func(v [][]byte) {
		d.offsets = append(d.offsets, readOffset(v))
	})
	if err != nil {
		return nil, fmt.Errorf("read the source offsets: %w", err)
	}
	if err := d.readKnown(ctx); err != nil {
		return nil, err
	}
	all, err := d.readManifests(ctx, retain)
	if err != nil {
		return nil, err
	}
	d.history = newHistory(all, retain)
	if newest := d.newest(always); newest != nil {
		d.chain = d.history.chain(newest)
	}
	return d, nil
}

func (d *head) readShard(ctx context.Context) error {
	known := false
	reset := func() { known = false }
	err := d.query(ctx, d.shard.statement("verify_shard"), reset, func(v [][]byte) {
		known, d.hasShard = true, v[0] != nil
		d.epoch, d.token, d.watermark = readInt8(v[0]), readInt8(v[1]), readTime(v[2])
		d.tokenMax, d.shards, d.shardsFound = readInt8(v[3]), int64(readInt4(v[4])), readInt8(v[5])
		d.purged = readInt8(v[6])
	})
	if err == nil && !known {
		err = fmt.Errorf("%w: there is no generation %d", ErrNoShard, d.shard.generation)
	}
	return err
}

func (d *head) readManifests(
	ctx context.Context, retain int64, named ...int64,
) (list []*storedManifest, err error) {
	s := d.shard.statement("verify_manifests")
	s.args.int8(retain)
	array(&s.args, int8Array, named, func(b []byte, n *int64) []byte { return appendInt8(b, *n) })
	err = d.query(ctx, s, func() { list = nil }, func(v [][]byte) {
		list = append(list, readManifest(v))
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	return list, nil
}

func readOffset(v [][]byte) storedOffset {
	return storedOffset{stream.Progress{
		Partition: stream.Partition{
			Side: readSide(v[0]), Source: string(v[1]), Number: readInt4(v[2]),
		},
		From: string(v[3]), To: string(v[3]), Watermark: readTime(v[4]), Idle: readBool(v[5]),
		LastEventAt: readTime(v[6]), Identity: string(v[7]),
	}, readInt8(v[8])}
}

// tip is the newest manifest; before the first one that says so.
func (d *head) tip() *storedManifest {
	if len(d.chain) == 0 {
		return &storedManifest{after: stream.NegInfinity}
	}
	return d.chain[len(d.chain)-1]
}

// settled tells whether an epoch is discarded, so that nothing depends on it, and not looked at.
func (d *head) settled(epoch int64) bool { return !d.strict && d.covered(epoch) }

// checkShard compares the shard's row.
func (d *head) checkShard() {
	note := func(what string, args ...any) {
		d.found.note(always, "shard", fmt.Sprint(d.shard.shard), what, args...)
	}
	newest := d.tip()
	switch {
	case !d.hasShard:
		note("it is missing")
	case d.epoch > newest.epoch && d.reached(d.epoch):
		d.found.note(d.epoch, "epoch", fmt.Sprint(d.epoch), "it is missing; the shard stands there")
	case d.epoch != newest.epoch:
		note("it stands at epoch %d, its newest manifest is that of epoch %d", d.epoch, newest.epoch)
	case d.watermark != newest.after:
		note("its watermark is %s, that of epoch %d is %s", d.watermark, newest.epoch, newest.after)
	case d.purged > d.epoch:
		note("its purged_epoch is %d, its epoch %d", d.purged, d.epoch)
	case d.token < d.tokenMax:
		note("its fencing token %d is lower than that of an attempt, %d", d.token, d.tokenMax)
	}
}

// reached tells whether the source offsets are those of an epoch.
func (d *head) reached(epoch int64) bool {
	return slices.ContainsFunc(d.offsets, func(o storedOffset) bool { return o.epoch == epoch })
}

// checkManifests compares the chain.
func (d *head) checkManifests() {
	d.checkChain(d.chain, &d.found)
	d.checkStatuses(d.chain, &d.found)
}

// checkOffsets compares the source offsets with what the manifests say of them: the newest one, and
// of a partition that it doesn't mention, the one that did.
func (d *head) checkOffsets(ctx context.Context) error {
	want := map[stream.Partition]storedOffset{}
	for _, o := range progressAt(d.chain) {
		want[o.Partition] = o
	}
	var older []int64
	for _, o := range d.offsets {
		if _, known := want[o.Partition]; !known {
			older = append(older, o.epoch)
		}
	}
	if len(older) > 0 && len(d.chain) > 0 {
		list, err := d.readManifests(ctx, 1, older...)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(m *storedManifest) bool {
			return m.epoch >= d.chain[0].epoch || !m.intact()
		})
		for _, o := range progressAt(list) {
			if _, known := want[o.Partition]; !known {
				want[o.Partition] = o
			}
		}
	}
	d.compareOffsets(want)
	return nil
}

func (d *head) compareOffsets(want map[stream.Partition]storedOffset) {
	d.expected = maps.Clone(want)
	for _, o := range d.offsets {
		expected, known := want[o.Partition]
		switch {
		case !known:
			d.found.note(always, "source_offset", o.String(), "no manifest says so")
		case o != expected:
			d.found.note(always, "source_offset", o.String(), "%s",
				differs(&o, &expected))
		}
		delete(want, o.Partition)
	}
	for _, missing := range want {
		d.found.note(always, "source_offset", missing.String(), "it is missing; epoch %d left it at "+
			"position %q", missing.epoch, missing.To)
	}
}

// differs tells the first column in which an offset is not what a manifest says.
func differs(o, want *storedOffset) string {
	for _, c := range []struct {
		column    string
		got, want any
	}{
		{"position", o.To, want.To},
		{"watermark", o.Watermark, want.Watermark},
		{"idle", o.Idle, want.Idle},
		{"last_event_at", o.LastEventAt, want.LastEventAt},
		{"identity", o.Identity, want.Identity},
		{"epoch", o.epoch, want.epoch},
	} {
		if c.got != c.want {
			return fmt.Sprintf("its %s is %v, the manifest of epoch %d says %v", c.column, c.got,
				want.epoch, c.want)
		}
	}
	return "it is not what the manifest says"
}

// window is the first epoch whose transitions are read again.
func (d *head) window() int64 {
	n, first := int64(0), int64(0)
	for i, m := range slices.Backward(d.chain) {
		n += m.transitions()
		if i < len(d.chain)-1 && n > windowTransitions {
			break
		}
		first = m.epoch
	}
	if len(d.chain) > 0 && first == d.chain[0].epoch && d.whole {
		return 0
	}
	return first
}

// pooled gives a query on connections of the pool, tried again while Postgres is away.
func (s *Store) pooled() query {
	once := s.once()
	return func(ctx context.Context, st statement, reset func(), row func(v [][]byte)) error {
		return s.retry(ctx, func() error { return once(ctx, st, reset, row) })
	}
}

// once gives a query on connections of the pool, for what is tried again as a whole.
func (s *Store) once() query {
	return func(ctx context.Context, st statement, reset func(), row func(v [][]byte)) error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		reset()
		return readAll(ctx, conn.Conn().PgConn(), st, row)
	}
}

// bytesOf writes ids as an array of bytea.
func bytesOf(a *args, ids []stream.MatchID) {
	array(a, byteaArray, ids, func(b []byte, id *stream.MatchID) []byte {
		return appendBytes(b, id[:])
	})
}

// optional is a text that may be null.
func optional(v []byte) pgtype.Text { return pgtype.Text{String: string(v), Valid: v != nil} }
