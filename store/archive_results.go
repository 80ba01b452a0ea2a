package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// firstPublished is the number of the first publication among the transitions until all are
// written: withdrawals come before, and how many there are is not known while results are compared.
const firstPublished = 1 << 30

// The columns of archive_matches.
const (
	columnKey     = 2  // bucket, and after it match_id
	columnTold    = 15 // status, after all that the row says
	columnOpened  = 16
	columnChanged = 17
	columnHash    = 18
)

// archivedKey gives the key of a row of archive_matches.
func archivedKey(row [][]byte) resultKey { return readResultKey(row[columnKey:]) }

// resultMerge compares the results of a snapshot with those stored, both in the order of the
// primary key, and puts right what differs.
type resultMerge struct {
	*archiveTx
	archived *archivedResults
	// undecided are the results to look at, until there are enough of them for a statement.
	undecided []resultCase
	put       [][][]byte
	gone      []resultKey
	moves     []resultMove
	withdrawn int32
	published int32
}

// resultCase is a result that differs: as it is stored, nil where it isn't, and as the snapshot has
// it, nil where it doesn't.
type resultCase struct {
	key             resultKey
	stored, archive [][]byte
	// intact is set when the stored row is what was written.
	intact bool
}

// resultMove is a transition.
type resultMove struct {
	key      resultKey
	from, to stream.Status
	ordinal  int32
}

// mergePage is how many differing results are written at once.
const mergePage = 5000

func (t *archiveTx) mergeResults(ctx context.Context, r *snapshotReader) error {
	m := &resultMerge{
		archiveTx: t, published: firstPublished,
		archived: newArchivedResults(r, t.later),
	}
	if err := m.archived.advance(); err != nil {
		return err
	}
	last := firstKey
	for {
		page, err := m.page(ctx, last)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, stored := range page {
			if err := m.compare(ctx, stored); err != nil {
				return err
			}
		}
		last = archivedKey(page[len(page)-1])
	}
	for m.archived.row != nil {
		if err := m.missing(ctx); err != nil {
			return err
		}
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	number := m.statement("archive_number")
	number.args.int8(t.e.delta.Epoch)
	number.args.int4(firstPublished)
	number.args.int4(m.withdrawn)
	if err := t.store.run(ctx, t.conn, []statement{number}, nil); err != nil {
		return err
	}
	_, err := m.readOutput(ctx, t.conn, t.e.delta, &t.e.manifest)
	return err
}

func (m *resultMerge) page(ctx context.Context, last resultKey) (page [][][]byte, err error) {
	s := m.statement("archive_matches")
	addKey(&s.args, last)
	err = m.store.run(ctx, m.conn, []statement{s}, map[int]reader{
		0: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				page = append(page, cloneRow(rows.Values()))
			}
			return nil
		},
	})
	return page, err
}

// compare takes the next stored result.
func (m *resultMerge) compare(ctx context.Context, stored [][]byte) error {
	key := archivedKey(stored)
	for m.archived.row != nil && archivedKey(m.archived.row).compare(key) < 0 {
		if err := m.missing(ctx); err != nil {
			return err
		}
	}
	said, standing := hashArchivedResult(stored)
	c := resultCase{
		key: key, stored: stored,
		intact: bytes.Equal(stored[columnHash], append(said[:], standing[:]...)),
	}
	if m.archived.row == nil || archivedKey(m.archived.row) != key {
		return m.decideLater(ctx, c)
	}
	c.archive = m.archived.row
	if !c.intact || !sameColumns(c.stored, c.archive, columnChanged) {
		c.archive = cloneRow(c.archive)
		if err := m.decideLater(ctx, c); err != nil {
			return err
		}
	}
	return m.archived.advance()
}

// missing takes the next result of the snapshot, which is not stored.
func (m *resultMerge) missing(ctx context.Context) error {
	row := cloneRow(m.archived.row)
	err := m.decideLater(ctx, resultCase{key: archivedKey(row), archive: row})
	if err != nil {
		return err
	}
	return m.archived.advance()
}

func (m *resultMerge) decideLater(ctx context.Context, c resultCase) error {
	m.undecided = append(m.undecided, c)
	if len(m.undecided) < mergePage {
		return nil
	}
	return m.flush(ctx)
}

// flush decides on what was put off and writes it.
func (m *resultMerge) flush(ctx context.Context) error {
	last, err := m.lastStatuses(ctx)
	if err != nil {
		return err
	}
	for i := range m.undecided {
		c := &m.undecided[i]
		switch {
		case c.archive == nil:
			m.withdraw(c)
		case c.intact:
			m.republish(c, stream.Status(c.stored[columnTold]))
		case last[c.key.id] != "":
			m.republish(c, last[c.key.id])
		default: // nothing happened to it since
			m.put = append(m.put, c.archive)
		}
	}
	m.undecided = m.undecided[:0]
	return m.write(ctx)
}

// lastStatuses gives where the results that are missing or damaged stood, if they moved after the
// snapshot: what came last on record.
func (m *resultMerge) lastStatuses(ctx context.Context) (map[stream.MatchID]stream.Status, error) {
	var ids []stream.MatchID
	for i := range m.undecided {
		if c := &m.undecided[i]; !c.intact && c.archive != nil {
			ids = append(ids, c.key.id)
		}
	}
	last := map[stream.MatchID]stream.Status{}
	if len(ids) == 0 {
		return last, nil
	}
	s := m.statement("archive_last_status")
	s.args.int8(m.tip.epoch)
	bytesOf(&s.args, ids)
	err := m.store.run(ctx, m.conn, []statement{s}, map[int]reader{
		0: func(rows *pgconn.ResultReader) error {
			for rows.NextRow() {
				v := rows.Values()
				last[stream.MatchID(v[0])] = stream.Status(v[1])
			}
			return nil
		},
	})
	return last, err
}

// withdraw takes a result that is not in the snapshot. It was published since, unless it is damaged
// or does not even claim to be: then nobody knows what it is, and the replay will publish it again
// if it is right.
func (m *resultMerge) withdraw(c *resultCase) {
	switch status := stream.Status(c.stored[columnTold]); {
	case !c.intact || readInt8(c.stored[columnChanged]) <= m.tip.epoch:
		m.gone = append(m.gone, c.key)
	case status.Active():
		m.move(c.stored, status, stream.Retracted)
	}
}

// republish writes what the snapshot says of a result that stands at another status, or says
// something else.
func (m *resultMerge) republish(c *resultCase, from stream.Status) {
	to := stream.Status(c.archive[columnTold])
	if c.intact && sameColumns(c.stored, c.archive, columnOpened) {
		// Its opened_epoch alone is wrong, which no hash covers.
		c.stored[columnOpened] = c.archive[columnOpened]
		m.put = append(m.put, c.stored)
		return
	}
	m.move(c.archive, from, to)
}

// move writes a result at a new status, and the transition.
func (m *resultMerge) move(row [][]byte, from, to stream.Status) {
	move := resultMove{key: archivedKey(row), from: from, to: to}
	epoch := m.e.delta.Epoch
	ordinal := &m.withdrawn
	if to.Active() {
		ordinal = &m.published
	}
	move.ordinal = *ordinal
	*ordinal++
	m.moves = append(m.moves, move)
	said := row[columnHash][:16]
	standing := hashColumns(appendStanding(nil, &move.key.id, to, epoch))
	row[columnTold] = []byte(to)
	row[columnChanged] = appendInt8(nil, epoch)[4:]
	row[columnHash] = slices.Concat(said, standing[:])
	m.put = append(m.put, row)
}

func (m *resultMerge) write(ctx context.Context) error {
	var batch []statement
	if len(m.put)+len(m.gone) > 0 {
		batch = append(batch, m.encodePut())
	}
	if len(m.moves) > 0 {
		s := m.statement("archive_put_transitions")
		a := &s.args
		a.int8(m.e.delta.Epoch)
		type move = resultMove
		array(a, int4Array, m.moves, func(b []byte, x *move) []byte { return appendInt4(b, x.ordinal) })
		array(a, int4Array, m.moves, func(b []byte, x *move) []byte {
			return appendInt4(b, x.key.bucket)
		})
		array(a, byteaArray, m.moves, func(b []byte, x *move) []byte {
			return appendBytes(b, x.key.id[:])
		})
		array(a, textArray, m.moves, func(b []byte, x *move) []byte { return appendText(b, x.from) })
		array(a, textArray, m.moves, func(b []byte, x *move) []byte { return appendText(b, x.to) })
		batch = append(batch, s)
	}
	m.put, m.gone, m.moves = m.put[:0], m.gone[:0], m.moves[:0]
	if len(batch) == 0 {
		return nil
	}
	return m.store.run(ctx, m.conn, batch, nil)
}

func (m *resultMerge) encodePut() statement {
	s := m.statement("archive_put_matches")
	kinds := []arrayKind{
		int4Array, byteaArray, textArray, textArray, int8Array, textArray, int8Array, textArray,
		timeArray, timeArray, timeArray, textArray, textArray, textArray, int8Array, int8Array,
		byteaArray,
	}
	for i, kind := range kinds {
		array(&s.args, kind, m.put, func(b []byte, row *[][]byte) []byte {
			return appendColumnsOf(b, *row, columnKey+i)
		})
	}
	addKeys(&s.args, m.gone)
	return s
}

// sameColumns tells whether two rows say the same and stand the same, up to a column.
func sameColumns(a, b [][]byte, upTo int) bool {
	for i := range upTo {
		if !bytes.Equal(a[i], b[i]) || (a[i] == nil) != (b[i] == nil) {
			return false
		}
	}
	return true
}

// archivedResults gives the results of a snapshot in the order of the primary key: its first part, with
// what changed while it was taken in place.
type archivedResults struct {
	reader *snapshotReader
	later  map[resultKey][][]byte
	// left are the keys of later that are still to come.
	left []resultKey
	main [][]byte
	row  [][]byte
	// held is set while main was not given yet; done after its last.
	held, done bool
}

func newArchivedResults(r *snapshotReader, later map[resultKey][][]byte) *archivedResults {
	a := &archivedResults{reader: r, later: later}
	a.left = slices.SortedFunc(maps.Keys(later), resultKey.compare)
	return a
}

// advance puts the next result into row, nil after the last. It is good until the call after.
func (a *archivedResults) advance() (err error) {
	if !a.held && !a.done {
		if a.main, err = a.reader.next(); err != nil {
			return err
		}
		a.held, a.done = a.main != nil, a.main == nil
	}
	a.row = a.main
	order := 1
	if len(a.left) > 0 {
		order = -1
		if a.held {
			order = a.left[0].compare(archivedKey(a.main))
		}
	}
	if order <= 0 {
		a.row = cloneRow(a.later[a.left[0]])
		a.left = a.left[1:]
	}
	if order >= 0 {
		a.held = false
	}
	if a.row != nil && len(a.row) != columnHash+1 {
		return fmt.Errorf("%w: a result of %d columns", ErrSnapshot, len(a.row))
	}
	return nil
}
