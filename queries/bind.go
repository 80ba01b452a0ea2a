package queries

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrParameter reports a parameter that a query does not take, needs and was not given, or whose
// value is not of its type. The error's text names it.
var ErrParameter = errors.New("bad parameter")

// token finds what may hold a variable and, before it, what hides one: comments, literals, quoted
// names, dollar quotes and casts.
var token = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|\$\$.*?\$\$|::|'(?:[^']|'')*'|` +
	`:"(schema)"|:'([a-z_]+)'|"(?:[^"]|"")*"`)

// Bind gives the statement to run in schema with the arguments in args, and its values. Arguments
// left out take their defaults. Each :'name' becomes a placeholder cast to the parameter's type.
func (q *Query) Bind(schema string, args map[string]string) (sql string, values []any, err error) {
	for name := range args {
		if !slices.ContainsFunc(q.Parameters, func(p Parameter) bool { return p.Name == name }) {
			return "", nil, q.refuse(name, "query %s has no such parameter; it takes %s",
				q.Name, q.parameterNames())
		}
	}
	placeholders := map[string]string{}
	for _, p := range q.Parameters {
		text, given := args[p.Name]
		if !given && p.Required {
			return "", nil, q.refuse(p.Name, "query %s needs it; add %s=…", q.Name, p.Name)
		}
		if !given {
			text = p.Default
		}
		value, err := p.value(text)
		if err != nil {
			return "", nil, q.refuse(p.Name, "%w", err)
		}
		values = append(values, value)
		placeholders[p.Name] = fmt.Sprintf("$%d::%s", len(values), p.sqlType())
	}
	return q.replace(schema, placeholders), values, nil
}

func (q *Query) refuse(parameter, format string, args ...any) error {
	return fmt.Errorf("%w %s: %w", ErrParameter, parameter, fmt.Errorf(format, args...))
}

func (q *Query) parameterNames() string {
	if len(q.Parameters) == 0 {
		return "none"
	}
	names := make([]string, len(q.Parameters))
	for i, p := range q.Parameters {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func (q *Query) replace(schema string, placeholders map[string]string) string {
	return token.ReplaceAllStringFunc(q.body, func(found string) string {
		m := token.FindStringSubmatch(found)
		switch {
		case m[1] != "":
			return pgx.Identifier{schema}.Sanitize()
		case m[2] != "":
			return placeholders[m[2]]
		}
		return found
	})
}

func (p *Parameter) sqlType() string {
	if p.words() != nil {
		return "text"
	}
	return p.Type
}

// words gives the values allowed when the type is a list of them, else nil.
func (p *Parameter) words() []string {
	if !strings.Contains(p.Type, "|") {
		return nil
	}
	return strings.Split(p.Type, "|")
}

// value checks text against the parameter's type, so that the error names the parameter and not a
// place in the statement.
func (p *Parameter) value(text string) (any, error) {
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("it holds a NUL character, which Postgres text can't")
	}
	if words := p.words(); words != nil {
		if !slices.Contains(words, text) {
			return nil, fmt.Errorf("%q: want %s", text, strings.Join(words, " or "))
		}
		return text, nil
	}
	switch p.Type {
	case "bigint":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: want a whole number", text)
		}
		return n, nil
	case "timestamptz":
		return timestamp(text)
	}
	return text, nil
}

// timestamp reads RFC 3339, a date in UTC, or one of the infinities. A local time is refused: it
// would mean another moment in another session.
func timestamp(text string) (pgtype.Timestamptz, error) {
	switch text {
	case "infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, nil
	case "-infinity":
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return pgtype.Timestamptz{Time: t, Valid: true}, nil
		}
	}
	return pgtype.Timestamptz{}, fmt.Errorf("%q: want a time like 2026-01-31T12:00:00Z, "+
		"a date, infinity or -infinity", text)
}
