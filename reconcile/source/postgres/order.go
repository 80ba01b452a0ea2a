package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Compare orders two positions as pages are ordered. Whole numbers, of which most positions consist,
// are compared here; for any other type only the server knows the order, and it is asked.
func (s *Source) Compare(ctx context.Context, a, b string) (int, error) {
	if a == "" || b == "" || a == b {
		return cmp.Compare(min(len(a), 1), min(len(b), 1)), nil
	}
	if s.table == nil {
		return 0, fmt.Errorf("compare positions of %s: the source isn't open", s.config.Table)
	}
	first, err := s.decode(a)
	if err != nil {
		return 0, err
	}
	second, err := s.decode(b)
	if err != nil {
		return 0, err
	}
	for i, by := range s.table.order {
		if first[i] == second[i] {
			continue
		}
		if !wholeNumber(by.typ) {
			return s.compareThere(ctx, first[i:], second[i:])
		}
		return compareWhole(first[i], second[i]), nil
	}
	return 0, nil
}

// compareThere lets the server compare the last terms of two positions. The union with none of the
// table's rows gives the values the collation of its columns.
func (s *Source) compareThere(ctx context.Context, a, b position) (order int, err error) {
	terms := s.table.order[len(s.table.order)-len(a):]
	expressions, names := make([]string, len(terms)), make([]string, len(terms))
	var params []string
	values := func(p position) string {
		casts := make([]string, len(p))
		for i, value := range p {
			params = append(params, value)
			casts[i] = fmt.Sprintf("$%d::%s", len(params), terms[i].typ)
		}
		return fmt.Sprintf("(select %s from %s as t where false union all select %s)",
			strings.Join(expressions, ", "), s.quoted, strings.Join(casts, ", "))
	}
	for i, by := range terms {
		expressions[i], names[i] = by.expression, fmt.Sprintf("c%d", i)
	}
	columns := func(of string) string { return of + "." + strings.Join(names, ", "+of+".") }
	list := strings.Join(names, ", ")
	sql := fmt.Sprintf("select (%[1]s) > (%[2]s), (%[1]s) < (%[2]s) from %[3]s as a (%[5]s), "+
		"%[4]s as b (%[5]s)", columns("a"), columns("b"), values(a), values(b), list)
	err = s.query(ctx, sql, params, func(values [][]byte) {
		order = truth(values[0]) - truth(values[1])
	})
	return order, err
}

func truth(value []byte) int {
	if string(value) == "t" {
		return 1
	}
	return 0
}

func wholeNumber(typ string) bool {
	switch typ {
	case "xid8", "bigint", "integer", "smallint", "oid":
		return true
	}
	return false
}

// compareWhole compares two whole numbers, which Postgres writes without leading zeros.
func compareWhole(a, b string) int {
	negativeA, negativeB := strings.HasPrefix(a, "-"), strings.HasPrefix(b, "-")
	order := cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	switch {
	case negativeA && negativeB:
		return -order
	case negativeA:
		return -1
	case negativeB:
		return 1
	}
	return order
}
