package postgres

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// position holds a row's value for each term of the order, as Postgres writes it; empty is the
// beginning. As text its parts are separated by slashes, with slashes in them escaped.
type position []string

func (p position) String() string {
	escaped := make([]string, len(p))
	for i, part := range p {
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/")
}

// positionOf copies the values of a row's terms.
func positionOf(values [][]byte) position {
	p := make(position, len(values))
	for i, value := range values {
		p[i] = string(value)
	}
	return p
}

func (s *Source) decode(text string) (position, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) != len(s.table.order) {
		return nil, s.lost("position %q doesn't fit its order, %s", text, s.table.identity())
	}
	for i, part := range parts {
		var err error
		if parts[i], err = url.PathUnescape(part); err != nil {
			return nil, s.lost("position %q is none of this table", text)
		}
	}
	return parts, nil
}

// readPage appends up to limit rows after the position and moves it past them.
func (s *Source) readPage(
	ctx context.Context, records []stream.Record, limit int,
) ([]stream.Record, error) {
	terms := len(s.table.order)
	sql, params := s.pageSQL(limit)
	var last position
	err := s.query(ctx, sql, params, func(values [][]byte) {
		last = positionOf(values[:terms])
		row := s.record(values[terms])
		row.Position = last.String()
		records = append(records, row)
	})
	if err != nil {
		return nil, err
	}
	if last != nil {
		s.position = last
	}
	return records, nil
}

// record maps the JSON text of a row. One over the limit is cut before it's copied.
func (s *Source) record(row []byte) stream.Record {
	if limit := s.mapper.MaxEventBytes(); len(row) > limit {
		return s.mapper.TooLarge(bytes.Clone(row[:limit]))
	}
	return s.mapper.JSON(bytes.Clone(row))
}

// pageSQL builds the statement of one page: keyset pagination over the terms of the order.
func (s *Source) pageSQL(limit int) (sql string, values []string) {
	params := &parameters{}
	where := s.within(s.position, params)
	if len(where) == 0 {
		where = []string{"true"}
	}
	return fmt.Sprintf("select %s, to_json(t.*)::text from %s as t where %s order by %s limit %s",
			strings.Join(s.expressions("::text"), ", "), s.quoted, strings.Join(where, " and "),
			strings.Join(s.expressions(""), ", "), params.add(strconv.Itoa(limit), "bigint")),
		params.values
}

// within gives the conditions that a row comes after a position, not after the end, and, in the
// sound way, that whatever commits later comes after it. Up to an end that was fixed before nothing
// more commits.
func (s *Source) within(after position, params *parameters) (where []string) {
	if len(after) > 0 {
		where = append(where, s.compared(">", after, params))
	}
	if len(s.last) > 0 {
		where = append(where, s.compared("<=", s.last, params))
	}
	switch written := s.table.order[0].expression; {
	case s.bounded && len(s.bound) == 0:
		where = append(where, "false")
	case s.bounded && s.sound():
		where = append(where, written+" < "+params.add(s.bound[0], "xid8"))
	case s.bounded:
		where = append(where, s.compared("<=", s.bound, params))
	case s.sound() && len(s.last) == 0:
		where = append(where, written+" < greatest(pg_snapshot_xmin(pg_current_snapshot()), "+
			params.add(s.horizon, "xid8")+")")
	}
	return where
}

// compared compares a row's place in the order with a position.
func (s *Source) compared(operator string, with position, params *parameters) string {
	casts := make([]string, len(with))
	for i, value := range with {
		casts[i] = params.add(value, s.table.order[i].typ)
	}
	return fmt.Sprintf("(%s) %s (%s)",
		strings.Join(s.expressions(""), ", "), operator, strings.Join(casts, ", "))
}

// parameters are the parameters of a statement, as text.
type parameters struct{ values []string }

// add gives the placeholder of a value.
func (p *parameters) add(value, typ string) string {
	p.values = append(p.values, value)
	return fmt.Sprintf("$%d::%s", len(p.values), typ)
}

// expressions gives the terms of the order as SQL, each with a suffix.
func (s *Source) expressions(suffix string) []string {
	all := make([]string, len(s.table.order))
	for i, by := range s.table.order {
		all[i] = by.expression + suffix
	}
	return all
}

func (s *Source) sound() bool { return s.config.Transaction != "" }

// presentEnd gives what Bound fixes: the oldest transaction still running, or the last row.
func (s *Source) presentEnd(ctx context.Context) (position, error) {
	if s.sound() {
		return s.soundEnd(ctx)
	}
	sql := fmt.Sprintf("select %s from %s as t order by %s limit 1",
		strings.Join(s.expressions("::text"), ", "), s.quoted,
		strings.Join(s.expressions(" desc nulls last"), ", "))
	var end position
	err := s.query(ctx, sql, nil, func(values [][]byte) {
		for _, value := range values {
			end = append(end, string(value))
		}
	})
	return end, err
}

// soundEnd waits until every row committed by now can be read: one behind a transaction that still
// runs would otherwise be left out of a bounded run.
func (s *Source) soundEnd(ctx context.Context) (position, error) {
	waited, cancel := context.WithTimeout(ctx, s.config.BoundWait)
	defer cancel()
	running, _, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	last, err := s.lastCommitted(ctx, running)
	for err == nil && last != "" && !less(last, running) {
		select {
		case <-waited.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("read %s to its present end: rows up to transaction %s are behind "+
				"transaction %s, which has been open for over %s; end it (pg_stat_activity shows it "+
				"as backend_xid) or wait for it, then run again",
				s.config.Table, last, running, s.config.BoundWait)
		case <-time.After(s.config.Poll):
		}
		running, _, err = s.snapshot(ctx)
	}
	return position{running}, err
}

// lastCommitted gives the transaction of the last row that is there from a transaction on; empty
// when there is none.
func (s *Source) lastCommitted(
	ctx context.Context, from string,
) (transaction string, err error) {
	written := s.table.order[0].expression
	sql := fmt.Sprintf("select %s::text from %s as t where %s >= $1::xid8 order by %s desc limit 1",
		written, s.quoted, written, written)
	err = s.query(ctx, sql, []string{from}, func(values [][]byte) { transaction = string(values[0]) })
	return transaction, err
}

// findHorizon makes rows readable that only transactions of other databases hold back.
func (s *Source) findHorizon(ctx context.Context) (err error) {
	if !s.sound() || s.bounded || len(s.last) > 0 || time.Since(s.horizonAt) < horizonAge {
		return nil
	}
	s.horizon, _, err = s.snapshot(ctx)
	s.horizonAt = time.Now()
	return err
}

// snapshot gives the first transaction id that may still write in the table's database, and the
// first that the server hasn't given out yet. It takes two statements: where a session belongs must
// be known before what it holds is looked at.
func (s *Source) snapshot(ctx context.Context) (running, next string, err error) {
	var known []string
	err = s.query(ctx, snapshotSQL, nil, func(values [][]byte) {
		known, next = []string{string(values[0]), string(values[2])}, string(values[1])
	})
	if err != nil {
		return "", "", err
	}
	err = s.query(ctx, horizonSQL, known, func(values [][]byte) { running = string(values[0]) })
	return running, next, err
}

// checkPosition finds a table that was rewound, as by a restore from a backup: it has nothing at
// or after the position any more, or transactions that this server hasn't begun.
func (s *Source) checkPosition(ctx context.Context) error {
	if s.sound() {
		return s.checkTransactions(ctx)
	}
	if len(s.position) == 0 {
		return nil
	}
	casts := make([]string, len(s.position))
	for i := range casts {
		casts[i] = fmt.Sprintf("$%d::%s", i+1, s.table.order[i].typ)
	}
	sql := fmt.Sprintf("select 1 from %s as t where (%s) >= (%s) limit 1", s.quoted,
		strings.Join(s.expressions(""), ", "), strings.Join(casts, ", "))
	there := false
	if err := s.query(ctx, sql, s.position, func([][]byte) { there = true }); err != nil {
		return err
	}
	if !there {
		return s.lost("it ends before %s, so rows up to there are missing", s.position)
	}
	return nil
}

func (s *Source) checkTransactions(ctx context.Context) error {
	_, next, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	if len(s.position) > 0 && !less(s.position[0], next) {
		return s.lost("the server's next transaction is %s, so those up to %s are missing",
			next, s.position[0])
	}
	// A row loaded from another server would stay unread until this one's counter gets there.
	written := s.table.order[0].expression
	foreign := false
	sql := fmt.Sprintf("select 1 from %s as t where %s >= "+
		"pg_snapshot_xmax(pg_current_snapshot()) limit 1", s.quoted, written)
	if err := s.query(ctx, sql, nil, func([][]byte) { foreign = true }); err != nil {
		return err
	}
	if foreign {
		return s.unusable("rows carry transaction ids that this server hasn't given out yet, as "+
			"after a dump and load; set column %q to pg_current_xact_id() in them",
			s.config.Transaction)
	}
	return nil
}

// less compares two transaction ids.
func less(a, b string) bool { return compareWhole(a, b) < 0 }
