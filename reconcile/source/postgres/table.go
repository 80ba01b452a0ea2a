package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// table is what the catalogue says of the table, as far as reading it in order needs.
type table struct {
	oid, database string
	hidesRows     bool
	readable      bool
	columns       []column
	indexes       []index
	// order lists what rows are ordered by; no two different rows are equal in all of it.
	order []term
}

type column struct {
	name, typ string
	// builtIn is true where the type is one of Postgres' own, whose operators need no search path.
	builtIn  bool
	nullable bool
	// fallback is the column's default expression.
	fallback string
	// keyPlace counts from 1 where the column is part of the primary key.
	keyPlace string
}

type index struct {
	unique  bool
	columns []string
}

// term is one expression of the order and its type, both as SQL.
type term struct{ name, expression, typ string }

// contentTerm orders rows that nothing else tells apart. Two that are equal in it are the same in
// every column, so that leaving out one of them loses nothing.
var contentTerm = term{
	name: "content", expression: `md5(to_json(t.*)::text) collate "C"`, typ: "text",
}

// identity names the table and the order its positions are in.
func (t *table) identity() string {
	parts := make([]string, len(t.order))
	for i, by := range t.order {
		parts[i] = by.name + " " + by.typ
	}
	return fmt.Sprintf("postgres:%s/%s:%s", t.database, t.oid, strings.Join(parts, ","))
}

func (t *table) column(name string) *column {
	for i := range t.columns {
		if t.columns[i].name == name {
			return &t.columns[i]
		}
	}
	return nil
}

// inspect reads the catalogue, and fails where the table or a column of the order isn't there.
func (s *Source) inspect(ctx context.Context) (*table, error) {
	var found *table
	err := s.query(ctx, tableSQL, []string{s.quoted}, func(v [][]byte) {
		found = &table{
			oid: string(v[0]), database: string(v[1]),
			hidesRows: string(v[2]) == "true", readable: string(v[3]) == "true",
		}
	})
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, s.unusable("there is none of this name; check source.table, case included")
	}
	err = s.query(ctx, columnsSQL, []string{found.oid}, func(v [][]byte) {
		found.columns = append(found.columns, column{
			name: string(v[0]), typ: string(v[1]), builtIn: string(v[2]) == "true",
			nullable: string(v[3]) == "true", fallback: string(v[4]), keyPlace: string(v[5]),
		})
	})
	if err != nil {
		return nil, err
	}
	if err := s.inspectIndexes(ctx, found); err != nil {
		return nil, err
	}
	return found, s.chooseOrder(found)
}

func (s *Source) inspectIndexes(ctx context.Context, found *table) error {
	var malformed error
	err := s.query(ctx, indexesSQL, []string{found.oid}, func(v [][]byte) {
		i := index{unique: string(v[0]) == "true"}
		malformed = errors.Join(malformed, json.Unmarshal(v[1], &i.columns))
		found.indexes = append(found.indexes, i)
	})
	if err = errors.Join(err, malformed); err != nil {
		return fmt.Errorf("look at the indexes of %s: %w", s.config.Table, err)
	}
	return nil
}

// chooseOrder orders by transaction and cursor, and by as much more as makes the order total.
func (s *Source) chooseOrder(t *table) error {
	for _, name := range []string{s.config.Transaction, s.config.Cursor} {
		if name == "" {
			continue
		}
		c := t.column(name)
		switch {
		case c == nil:
			return s.unusable("it has no column %q; check source.cursor and source.transaction", name)
		case name == s.config.Transaction && c.typ != "xid8":
			return s.unusable("column %q is %s; a transaction column is "+
				"xid8 not null default pg_current_xact_id()", name, c.typ)
		case !c.builtIn:
			return s.unusable("column %q is %s; a cursor has one of Postgres' own types, "+
				"such as bigint or timestamptz", name, c.typ)
		}
		t.order = append(t.order, c.term())
	}
	if !t.unique() {
		t.order = append(t.order, t.tiebreaker()...)
	}
	return nil
}

// tiebreaker gives the primary key's columns that aren't in the order yet, or the row's content.
func (t *table) tiebreaker() []term {
	var key []term
	for i := range t.columns {
		c := &t.columns[i]
		if c.keyPlace == "0" || t.ordered(c.name) {
			continue
		}
		if !c.builtIn {
			return []term{contentTerm}
		}
		key = append(key, c.term())
	}
	if len(key) == 0 {
		return []term{contentTerm}
	}
	return key
}

func (t *table) ordered(name string) bool {
	return slices.ContainsFunc(t.order, func(by term) bool { return by.name == name })
}

// unique tells whether an index allows no two rows that are equal in the order. Nulls, which a
// unique index lets through, are refused where the table is opened.
func (t *table) unique() bool {
	return slices.ContainsFunc(t.indexes, func(i index) bool {
		outside := func(name string) bool { return !t.ordered(name) }
		return i.unique && !slices.ContainsFunc(i.columns, outside)
	})
}

// indexed tells whether an index begins with the first columns of the order, so that a page costs
// its own rows only. One that lacks the last terms will do: ties are few.
func (t *table) indexed(columns ...string) bool {
	return slices.ContainsFunc(t.indexes, func(i index) bool {
		n := min(len(i.columns), len(columns))
		return slices.Equal(i.columns[:n], columns[:n])
	})
}

func (c *column) term() term {
	return term{name: c.name, expression: "t." + c.quoted(), typ: c.typ}
}

func (c *column) quoted() string { return pgx.Identifier{c.name}.Sanitize() }

// quoteTable turns schema.table into quoted identifiers, taking every part as it is written.
func quoteTable(name string) (string, error) {
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return "", errors.New("not valid text")
	}
	var parts pgx.Identifier
	for rest := name; ; {
		part, after, err := cutPart(rest)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		parts = pgx.Identifier{"public", parts[0]}
	case 2:
	default:
		return "", errors.New("want schema.table; put a part that contains a dot into quotes")
	}
	return parts.Sanitize(), nil
}

// cutPart takes one part off a dotted name; after begins with the dot, or is empty.
func cutPart(name string) (part, after string, err error) {
	if !strings.HasPrefix(name, `"`) {
		end := strings.IndexByte(name, '.')
		if end < 0 {
			end = len(name)
		}
		part, after = name[:end], name[end:]
	} else {
		end := 1
		for end < len(name) && (name[end] != '"' || strings.HasPrefix(name[end:], `""`)) {
			if name[end] == '"' {
				end++
			}
			end++
		}
		if end >= len(name) {
			return "", "", errors.New("a quote isn't closed")
		}
		part, after = strings.ReplaceAll(name[1:end], `""`, `"`), name[end+1:]
	}
	if part == "" || after != "" && after[0] != '.' || after == "." {
		return "", "", errors.New("want schema.table")
	}
	return part, after, nil
}
