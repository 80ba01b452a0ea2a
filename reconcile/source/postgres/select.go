package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// selectedPages is for how many pages the positions of selected rows are held in memory. Each time
// they are used up the server looks for the next.
const selectedPages = 20

// selection is the part of the table that Select asks for.
type selection struct {
	stream.Range
	// others are ids as an array literal of Postgres.
	others string
	// ahead are positions of rows yet to be read, and more is true where others follow them.
	ahead []position
	more  bool
}

// Selects tells whether the server can find the rows of a range of event times: the time is a
// column of type timestamptz, or a number as time_format says; the id is a column of a type whose
// equality is that of its text, or coarser; and rows are told apart by columns. The source must be
// open.
//
// An index on the time column and one on the id column make selecting cost what the range holds.
// Without them the server looks through the whole table once for every selectedPages pages.
func (s *Source) Selects() bool {
	return s.table != nil && s.timeCondition(stream.Range{}, &parameters{}) != "" &&
		s.idArray() != "" && !slices.Contains(s.table.order, contentTerm)
}

// Find yields the ids of the rows with an event time in the range, up to where EndAt says. An id
// that has several is yielded once. A row that is no event counts as well.
func (s *Source) Find(
	ctx context.Context, r stream.Range, yield func(id string),
) error {
	params := &parameters{}
	sql := fmt.Sprintf("select distinct %s::text from %s as t where %s",
		s.idColumn(), s.quoted, s.inRange(r, params))
	return s.query(ctx, sql, params.values, func(values [][]byte) { yield(string(values[0])) })
}

// Select makes Read give, until the source is opened again, only the rows of ids that have one with
// an event time in the range, up to where EndAt says, and those of other ids. Selects must be true.
func (s *Source) Select(r stream.Range, others []string) {
	s.selection = &selection{Range: r, others: s.arrayOfIDs(others), more: true}
}

// readSelected is Read for a part of the table.
func (s *Source) readSelected(
	ctx context.Context, maxRecords int,
) (records []stream.Record, atEnd bool, err error) {
	selected := s.selection
	for len(records) < maxRecords {
		if len(selected.ahead) == 0 {
			if !selected.more {
				return records, true, nil
			}
			if err := s.look(ctx); err != nil {
				return nil, false, err
			}
			continue
		}
		n := min(s.config.Page, maxRecords-len(records), len(selected.ahead))
		if records, err = s.readAt(ctx, records, selected.ahead[:n]); err != nil {
			return nil, false, err
		}
		s.position, selected.ahead = selected.ahead[n-1], selected.ahead[n:]
	}
	return records, false, nil
}

// look finds the next positions of the selection.
func (s *Source) look(ctx context.Context) error {
	params := &parameters{}
	ids := fmt.Sprintf("select %s from %s as t where %s", s.idColumn(), s.quoted,
		s.inRange(s.selection.Range, params))
	if s.selection.others != "{}" {
		ids += " union all select unnest(" + params.add(s.selection.others, s.idArray()) + ")"
	}
	where := []string{fmt.Sprintf("%s in (%s)", s.idColumn(), ids)}
	where = append(where, s.within(s.position, params)...)
	limit := selectedPages * s.config.Page
	sql := fmt.Sprintf("select %s from %s as t where %s order by %s limit %s",
		strings.Join(s.expressions("::text"), ", "), s.quoted, strings.Join(where, " and "),
		strings.Join(s.expressions(""), ", "), params.add(strconv.Itoa(limit), "bigint"))
	var found []position
	err := s.query(ctx, sql, params.values, func(values [][]byte) {
		found = append(found, positionOf(values))
	})
	s.selection.ahead, s.selection.more = found, len(found) == limit
	return err
}

// readAt appends the rows at these positions. One that is gone from there meanwhile is left out, as
// reading everything would.
func (s *Source) readAt(
	ctx context.Context, records []stream.Record, at []position,
) ([]stream.Record, error) {
	terms := s.table.order
	params := &parameters{}
	arrays, names := make([]string, len(terms)), make([]string, len(terms))
	for i, by := range terms {
		column := make([]string, len(at))
		for n := range at {
			column[n] = at[n][i]
		}
		arrays[i] = params.add(arrayLiteral(column), by.typ+"[]")
		names[i] = fmt.Sprintf("c%d", i)
	}
	sql := fmt.Sprintf("select %s, to_json(t.*)::text "+
		"from unnest(%s) with ordinality as p (%s, place) join %s as t on (%s) = (p.%s) order by p.place",
		strings.Join(s.expressions("::text"), ", "), strings.Join(arrays, ", "),
		strings.Join(names, ", "), s.quoted, strings.Join(s.expressions(""), ", "),
		strings.Join(names, ", p."))
	err := s.query(ctx, sql, params.values, func(values [][]byte) {
		row := s.record(values[len(terms)])
		row.Position = positionOf(values[:len(terms)]).String()
		records = append(records, row)
	})
	return records, err
}

// inRange is the condition that a row lies in a range of event times, and not after the end.
func (s *Source) inRange(r stream.Range, params *parameters) string {
	where := []string{s.timeCondition(r, params)}
	return strings.Join(append(where, s.within(nil, params)...), " and ")
}

// The event times that exist are in the years 1 to 9999; other values of a column are no event
// time.
var (
	timeMin = stream.MicrosOf(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
	timeMax = stream.MicrosOf(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC))
)

// unit is that of a time_format: in microseconds, and a microsecond in it.
type unit struct {
	micros   stream.Micros
	fraction string
}

var units = map[string]unit{
	"unix_s": {1_000_000, "0.000001"}, "unix_ms": {1000, "0.001"}, "unix_us": {1, "1"},
}

// timeCondition is the condition on the time column alone, empty where the server cannot tell.
func (s *Source) timeCondition(r stream.Range, params *parameters) string {
	c := s.table.column(s.config.Mapping.Time)
	if c == nil {
		return ""
	}
	first, last := max(r.From, timeMin), min(r.To-1, timeMax)
	unit, unix := units[s.config.Mapping.TimeFormat]
	var low, high string
	switch {
	case !unix && c.typ == "timestamp with time zone":
		low, high = params.add(first.String(), c.typ), params.add(last.String(), c.typ)
	case unix && (c.typ == "bigint" || c.typ == "integer" || c.typ == "smallint"):
		low = params.add(whole(-floor(-first, unit.micros)), "bigint")
		high = params.add(whole(floor(last, unit.micros)), "bigint")
	case unix && c.typ == "numeric":
		// A fraction of a microsecond is cut off, so the last one lasts until the next begins.
		return fmt.Sprintf("%[1]s >= %[3]s * %[2]s and %[1]s < %[4]s * %[2]s", c.term().expression,
			unit.fraction, params.add(whole(first), "numeric"), params.add(whole(last+1), "numeric"))
	default:
		return ""
	}
	return fmt.Sprintf("%[1]s >= %[2]s and %[1]s <= %[3]s", c.term().expression, low, high)
}

// floor divides toward the past.
func floor(a, by stream.Micros) stream.Micros {
	quotient := a / by
	if a%by < 0 {
		quotient--
	}
	return quotient
}

func whole(n stream.Micros) string { return strconv.FormatInt(int64(n), 10) }

func (s *Source) idColumn() string {
	return s.table.column(s.config.Mapping.ID).term().expression
}

// idArray gives the type of an array of ids, empty where the id is no column that can be looked
// for.
func (s *Source) idArray() string {
	c := s.table.column(s.config.Mapping.ID)
	switch {
	case c == nil:
		return ""
	case c.typ == "bigint", c.typ == "integer", c.typ == "smallint":
		return "bigint[]"
	case c.typ == "text", c.typ == "character varying":
		return "text[]"
	case c.typ == "uuid":
		return "uuid[]"
	}
	return ""
}

// arrayOfIDs gives those ids that the column can hold, as an array literal.
func (s *Source) arrayOfIDs(ids []string) string {
	var holds func(id string) bool
	switch s.idArray() {
	case "bigint[]":
		holds = func(id string) bool {
			n, err := strconv.ParseInt(id, 10, 64)
			return err == nil && strconv.FormatInt(n, 10) == id
		}
	case "uuid[]":
		holds = func(id string) bool {
			u, err := uuid.Parse(id)
			return err == nil && u.String() == id
		}
	default:
		return arrayLiteral(ids)
	}
	lacks := func(id string) bool { return !holds(id) }
	return arrayLiteral(slices.DeleteFunc(slices.Clone(ids), lacks))
}

var arrayEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// arrayLiteral writes an array as Postgres reads it, no element being null.
func arrayLiteral(elements []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, element := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(arrayEscaper.Replace(element))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
