package queries

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const sample = `-- Question: What is there,
--   and what not?
-- Parameter: id text -- the id
-- Parameter: limit bigint '20' -- how many
-- Parameter: mark text 'it''s' -- a mark
-- Parameter: step hour|day 'day' -- the step
-- Parameter: from timestamptz '-infinity' -- since when
-- Column: id -- the id
\if :{?limit} \else \set limit '20' \endif
select :'id'::text, 'a :''id'' b :"schema"', ":'id'", x::text -- :'id' and :"schema"
from :"schema".t /* :'id'
*/ where :'id' = ':' and $$ :'mark' $$ <> :'mark' and "odd""name" > :'from' limit :'limit';
`

func TestBind(t *testing.T) {
	t.Parallel()
	q, err := parse("sample", sample)
	if err != nil {
		t.Fatal(err)
	}
	sql, values, err := q.Bind(`s"x :'id'`, map[string]string{"id": "7", "from": "2026-01-31"})
	if err != nil {
		t.Fatal(err)
	}
	want := `select $1::text::text, 'a :''id'' b :"schema"', ":'id'", x::text -- :'id' and :"schema"
from "s""x :'id'".t /* :'id'
*/ where $1::text = ':' and $$ :'mark' $$ <> $3::text and "odd""name" > $5::timestamptz limit ` +
		`$2::bigint`
	if sql != want {
		t.Errorf("found\n%s\nwant\n%s", sql, want)
	}
	if got := values[:4]; !reflect.DeepEqual(got, []any{"7", int64(20), "it's", "day"}) {
		t.Errorf("values %v", got)
	}
	if q.Question != "What is there, and what not?" {
		t.Errorf("question %q", q.Question)
	}
}

func TestBindRefuses(t *testing.T) {
	t.Parallel()
	q, err := parse("sample", sample)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, value, says string }{
		{"nothing", "1", "parameter nothing: query sample has no such parameter; it takes id, limit"},
		{"limit", "x", `parameter limit: "x": want a whole number`},
		{"limit", "", `parameter limit: "": want a whole number`},
		{"limit", "9223372036854775808", "parameter limit"},
		{"step", "week", `parameter step: "week": want hour or day`},
		{"from", "2026-01-31 12:00", `parameter from: "2026-01-31 12:00": want a time`},
		{"mark", "a\x00b", "parameter mark: it holds a NUL character"},
	}
	for _, test := range tests {
		args := map[string]string{"id": "7", test.name: test.value}
		_, _, err := q.Bind("s", args)
		if !errors.Is(err, ErrParameter) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s=%s gives %v, want %q", test.name, test.value, err, test.says)
		}
	}
	_, _, err = q.Bind("s", nil)
	if !errors.Is(err, ErrParameter) || !strings.Contains(err.Error(), "parameter id: query sample") {
		t.Errorf("without id: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"select 1":                                    "no question",
		"-- Question: a?\nselect 1":                   "no column",
		"-- About: a\nselect 1":                       "want Question, Parameter or Column",
		"-- Question: a?\n-- Parameter: x\nselect 1":  "want NAME TYPE 'DEFAULT' -- about",
		"-- Question: a?\n-- Column: x y\nselect 1":   "want NAME -- about",
		"-- Question: a?\n-- Parameter: x y z -- a\n": "want NAME TYPE 'DEFAULT' -- about",
	} {
		if _, err := parse("bad", text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q gives %v, want %q", text, err, says)
		}
	}
}

// A variable without a declared parameter would vanish from the statement.
func TestVariablesAreDeclared(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		declared, used := map[string]bool{}, map[string]bool{}
		for _, p := range q.Parameters {
			declared[p.Name] = true
			if p.words() == nil && p.Type != "text" && p.Type != "bigint" && p.Type != "timestamptz" {
				t.Errorf("query %s: parameter %s is of unknown type %s", q.Name, p.Name, p.Type)
			}
			if _, err := p.value(p.Default); err != nil && !p.Required {
				t.Errorf("query %s: default of %s: %v", q.Name, p.Name, err)
			}
		}
		for _, m := range token.FindAllStringSubmatch(q.body, -1) {
			if m[2] != "" && !declared[m[2]] {
				t.Errorf("query %s uses %s and does not declare it", q.Name, m[2])
			}
			used[m[2]] = true
		}
		for name := range declared {
			if !used[name] {
				t.Errorf("query %s declares %s and does not use it", q.Name, name)
			}
		}
		if q.body == "" {
			t.Errorf("query %s is empty", q.Name)
		}
	}
}
