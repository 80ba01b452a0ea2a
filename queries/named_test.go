package queries_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/testenv"
)

var rewrite = flag.Bool("rewrite", false, "write the answers found into testdata/named")

// TestNamed runs the scripts of testdata/named: a line "> QUERY name=value …" and the rows it
// gives on the fixture. Values that depend on the clock are shown as "…".
func TestNamed(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{testenv.Schema, hostileSchema} {
		tx := fixture(t, schema)
		tested := map[string]bool{}
		for _, file := range scripts(t) {
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			tested[name] = true
			t.Run(name, func(t *testing.T) { runScript(t, tx, schema, file) })
		}
		for _, q := range all(t) {
			if !tested[q.Name] {
				t.Errorf("query %s has no script in testdata/named", q.Name)
			}
		}
	}
}

func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/named/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func all(t *testing.T) []queries.Query {
	t.Helper()
	list, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func runScript(t *testing.T, tx pgx.Tx, schema, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		words := strings.Fields(command)
		args := map[string]string{}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			args[name] = value
		}
		fmt.Fprintf(&found, "%s%s\n", line, ask(t, tx, schema, words[0], args))
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(found.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if found.String() != string(text) {
		t.Errorf("%s, schema %s: found\n%s\nwant\n%s", file, schema, found.String(), text)
	}
}

// ask runs the query as tally query does and as psql does, and fails unless both answer alike and
// the columns are those of the header.
func ask(t *testing.T, tx pgx.Tx, schema, name string, args map[string]string) string {
	t.Helper()
	q, err := queries.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	sql, values, err := q.Bind(schema, args)
	if err != nil {
		t.Fatal(err)
	}
	columns, answer := rowsOf(t, tx, sql, values...)
	var want []string
	for _, c := range q.Columns {
		want = append(want, c.Name)
	}
	if !slices.Equal(columns, want) {
		t.Errorf("query %s gives columns %v, its header says %v", name, columns, want)
	}
	if _, typed := rowsOf(t, tx, asPsql(t, schema, name, args)); typed != answer {
		t.Errorf("query %s in psql gives\n%s\nhere\n%s", name, typed, answer)
	}
	return answer
}

// rowsOf gives the answer as text, one row a line.
func rowsOf(t *testing.T, tx pgx.Tx, sql string, values ...any) (columns []string, text string) {
	t.Helper()
	formats := pgx.QueryResultFormats{pgx.TextFormatCode}
	rows, err := tx.Query(t.Context(), sql, append([]any{formats}, values...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	var out strings.Builder
	for rows.Next() {
		for i, raw := range rows.RawValues() {
			cell := string(raw)
			switch {
			case raw == nil:
				cell = "-"
			case columns[i] == "age":
				cell = "…"
			}
			if i > 0 {
				out.WriteString(" | ")
			}
			out.WriteString(cell)
		}
		out.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return columns, out.String()
}

var (
	psqlDefault = regexp.MustCompile(
		`(?m)^\\if :\{\?([a-z_]+)\} \\else \\set ([a-z_]+) '(.*)' \\endif$`)
	psqlVariable = regexp.MustCompile(`:'([a-z_]+)'`)
)

// asPsql does with the file what psql -v name=value … -f FILE does.
func asPsql(t *testing.T, schema, name string, args map[string]string) string {
	t.Helper()
	file, err := os.ReadFile("named/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, m := range psqlDefault.FindAllStringSubmatch(string(file), -1) {
		values[m[1]] = m[3]
	}
	maps.Copy(values, args)
	var statement strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, `\`) {
			statement.WriteString(line)
		}
	}
	sql := psqlVariable.ReplaceAllStringFunc(statement.String(), func(found string) string {
		value := values[found[2:len(found)-1]]
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	})
	return queries.Render(sql, schema)
}

func TestPsqlDefaultsAreThoseOfTheHeader(t *testing.T) {
	t.Parallel()
	for _, q := range all(t) {
		file, err := os.ReadFile("named/" + q.Name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"schema": testenv.Schema}
		for _, p := range q.Parameters {
			if !p.Required {
				want[p.Name] = p.Default
			}
		}
		for _, m := range psqlDefault.FindAllStringSubmatch(string(file), -1) {
			value, ok := want[m[1]]
			if !ok || value != m[3] || m[1] != m[2] {
				t.Errorf("query %s: psql's default of %s is not the header's", q.Name, m[1])
			}
			delete(want, m[1])
		}
		for name := range want {
			t.Errorf("query %s: psql has no default for %s", q.Name, name)
		}
	}
}

func TestNamedUnknown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "nothing", "../engine/clock", "open-by-age.sql"} {
		if _, err := queries.Named(name); !errors.Is(err, queries.ErrUnknown) {
			t.Errorf("Named(%q) gives %v, want ErrUnknown", name, err)
		}
	}
}

// Ages are compared to the clock at the microsecond; the fixture has an event on each side of
// each bound.
func TestAgeBuckets(t *testing.T) {
	t.Parallel()
	tx := fixture(t, testenv.Schema)
	_, found := rowsOf(t, tx, `select id, age_bucket from tally.unmatched
		where reconciliation = 'ages' order by id`)
	want := "A1 | under 1 d\nA2 | under 1 d\nA3 | 1-7 d\nA4 | 1-7 d\nA5 | 8-30 d\nA6 | 8-30 d\n" +
		"A7 | over 30 d\nA8 | over 30 d\n"
	if found != want {
		t.Errorf("found\n%s\nwant\n%s", found, want)
	}
	q, err := queries.Named("open-by-age")
	if err != nil {
		t.Fatal(err)
	}
	sql, values, err := q.Bind(testenv.Schema, map[string]string{"reconciliation": "ages"})
	if err != nil {
		t.Fatal(err)
	}
	_, found = rowsOf(t, tx, "select side, age_bucket, rows, final, amount, unknown,"+
		" now() - oldest from ("+sql+") q", values...)
	want = "right | under 1 d | 2 | 2 | - | - | 23:59:59.999999\n" +
		"right | 1-7 d | 2 | 2 | - | - | 7 days 23:59:59.999999\n" +
		"right | 8-30 d | 2 | 2 | - | - | 30 days 23:59:59.999999\n" +
		"right | over 30 d | 2 | 2 | - | - | 375 days\n"
	if found != want {
		t.Errorf("found\n%s\nwant\n%s", found, want)
	}
}
