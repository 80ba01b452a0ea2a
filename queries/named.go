package queries

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// ErrUnknown reports a named query that does not exist.
var ErrUnknown = errors.New("no such query")

// Query is one named analyst query: a file under named/ whose header says what it answers.
//
// The header is made of comments "-- Question: …", "-- Parameter: NAME TYPE 'DEFAULT' -- about"
// and "-- Column: NAME -- about"; a comment line without a label continues the one before it. The
// lines that start with a backslash give psql the same defaults and are dropped here.
type Query struct {
	Name       string
	Question   string
	Parameters []Parameter
	Columns    []Column

	body string
}

// Parameter is a value that a query takes by name.
type Parameter struct {
	Name string
	// Type is text, bigint, timestamptz, or the words allowed, separated by |.
	Type string
	// Default is the value when none is given, unless Required.
	Default  string
	Required bool
	About    string
}

// Column is one column of a query's answer.
type Column struct{ Name, About string }

// All gives every named query by name.
func All() ([]Query, error) {
	files, err := fs.Glob(files, "named/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the named queries: %w", err)
	}
	var all []Query
	for _, file := range files {
		q, err := Named(strings.TrimSuffix(path.Base(file), ".sql"))
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// Named gives a query by its name, or an error wrapping [ErrUnknown].
func Named(name string) (Query, error) {
	text, err := files.ReadFile("named/" + name + ".sql")
	if err != nil {
		return Query{}, fmt.Errorf("query %q: %w; tally query --list shows them all", name, ErrUnknown)
	}
	q, err := parse(name, string(text))
	if err != nil {
		return Query{}, fmt.Errorf("read the header of query %s: %w", name, err)
	}
	return q, nil
}

var (
	labelled  = regexp.MustCompile(`^-- (Question|Parameter|Column): (.*)$`)
	parameter = regexp.MustCompile(`^([a-z_]+) ([a-z_|]+)(?: '((?:[^']|'')*)')? -- (.+)$`)
	column    = regexp.MustCompile(`^([a-z0-9_]+) -- (.+)$`)
)

func parse(name, text string) (Query, error) {
	q := Query{Name: name}
	header, body := split(text)
	for _, entry := range header {
		if err := q.add(entry); err != nil {
			return Query{}, err
		}
	}
	switch {
	case q.Question == "":
		return Query{}, errors.New("it has no question")
	case len(q.Columns) == 0:
		return Query{}, errors.New("it names no column")
	}
	q.body = body
	return q, nil
}

// split gives the labelled entries of the header, each on one line, and the statement without the
// header and without psql's own commands.
func split(text string) (header []string, body string) {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "--") {
		switch {
		case labelled.MatchString(lines[0]) || len(header) == 0:
			header = append(header, lines[0])
		default:
			header[len(header)-1] += " " + strings.TrimSpace(strings.TrimPrefix(lines[0], "--"))
		}
		lines = lines[1:]
	}
	var statement []string
	for _, line := range lines {
		if !strings.HasPrefix(line, `\`) {
			statement = append(statement, line)
		}
	}
	body = strings.TrimSpace(strings.Join(statement, "\n"))
	return header, strings.TrimSuffix(body, ";")
}

func (q *Query) add(entry string) error {
	m := labelled.FindStringSubmatch(entry)
	if m == nil {
		return fmt.Errorf("%q: want Question, Parameter or Column", entry)
	}
	switch m[1] {
	case "Question":
		q.Question = m[2]
	case "Parameter":
		p := parameter.FindStringSubmatch(m[2])
		if p == nil {
			return fmt.Errorf("%q: want NAME TYPE 'DEFAULT' -- about", entry)
		}
		q.Parameters = append(q.Parameters, Parameter{
			Name: p[1], Type: p[2], Default: strings.ReplaceAll(p[3], "''", "'"),
			Required: !strings.Contains(strings.TrimSuffix(m[2], p[4]), "'"), About: p[4],
		})
	case "Column":
		c := column.FindStringSubmatch(m[2])
		if c == nil {
			return fmt.Errorf("%q: want NAME -- about", entry)
		}
		q.Columns = append(q.Columns, Column{Name: c[1], About: c[2]})
	}
	return nil
}
