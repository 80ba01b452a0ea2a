package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

const at = "2024-01-01T00:00:00Z"

func TestCSVRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "\xef\xbb\xbfid;\"k\";t;n;note\r\n" +
		"a;k;" + at + ";1,5;\"two\nlines \"\"quoted\"\";\"\r\n" +
		"\r\n" +
		"b;k;" + at + ";2;\n"
	write(t, path, text)
	c := config(path)
	c.Delimiter = ';'
	s := open(t, c, "", "")
	records, atEnd, err := s.Read(t.Context(), 10)
	if err != nil || !atEnd || len(records) != 2 {
		t.Fatalf("%v %v %+v", err, atEnd, records)
	}
	want := `{"n":"1,5","note":"two\nlines \"quoted\";"}`
	if e := records[0].Event; e.ID != "a" || e.Key != "k" || e.Attributes != want {
		t.Errorf("got %q %+v", records[0].Reason, e)
	}
	if records[1].Event.ID != "b" || records[1].Position != fmt.Sprint(len(text)) {
		t.Errorf("got %+v", records[1])
	}
	resumed := open(t, c, records[0].Position, s.Identity())
	check(t, drain(t, resumed), fmt.Sprint("b@", len(text)))
}

// TestBadRows has each way a row can be bad; a stray quote costs its own line and no other.
func TestBadRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ rows, want string }{
		"too few columns":     {"a,k," + at + "\n", "short_row"},
		"too many columns":    {"a,k," + at + ",1,2\n", "bad_row"},
		"bare quote":          {"a\"b,k," + at + ",1\n", "bad_row"},
		"text after a quote":  {"\"a\"b,k," + at + ",1\n", "bad_row"},
		"stray opening quote": {"\"a,k," + at + ",1\nb,\"k\"," + at + ",1\n", "bad_row b"},
		"stray quote, no other": {
			"\"a,k\n" + strings.Repeat("b,k,"+at+",1\n", 20), "bad_row" + strings.Repeat(" b", 20),
		},
		"NaN":                   {"a,k," + at + ",NaN\n", "bad_number"},
		"NUL":                   {"a\x00,k," + at + ",1\n", "nul_character"},
		"invalid UTF-8":         {"\xff,k," + at + ",1\n", "bad_utf8"},
		"no id":                 {",k," + at + ",1\n", "missing_id"},
		"no key":                {"a,," + at + ",1\n", "missing_key"},
		"no time":               {"a,k,,1\n", "bad_time"},
		"too large":             {strings.Repeat("x", 400) + ",k," + at + ",1\n", "too_large"},
		"too large by far":      {strings.Repeat("x", 2*blockBytes) + ",k," + at + ",1\n", "too_large"},
		"open quote, long line": {"\"" + strings.Repeat("x", 400) + ",k\n", "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.csv")
			write(t, path, "id,k,t,n\n"+test.rows+"last,k,"+at+",1\n")
			s := open(t, config(path), "", "")
			s.Seal()
			var got []string
			for _, said := range drain(t, s) {
				name, _, _ := strings.Cut(said, "@")
				got = append(got, name)
			}
			check(t, got, test.want+" last")
		})
	}
}

func TestAnOpenQuoteAtTheEndWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.csv")
	write(t, path, "id,k,t,n\na,\"two\n")
	s := open(t, config(path), "", "")
	check(t, drain(t, s))
	grow(t, path, "lines\"")
	check(t, drain(t, s))
	grow(t, path, ","+at+",1\n")
	records, _, err := s.Read(t.Context(), 2)
	if err != nil || len(records) != 1 || records[0].Event.Key != "two\nlines" {
		t.Errorf("%v %+v", err, records)
	}
}

func TestTheHeaderIsWaitedForAndChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.csv")
	write(t, path, "id,k,t")
	s := open(t, config(path), "", "")
	check(t, drain(t, s))
	grow(t, path, ",n\na,k,"+at+",1\n")
	check(t, drain(t, s), fmt.Sprint("a@", len("id,k,t,n\na,k,"+at+",1\n")))

	for part, header := range map[string]string{
		`"t"`:  "id,k,n\n",
		`"id"`: "id,k,t,n,id\n",
		"row":  "id,\"k\"x,t,n\n",
	} {
		write(t, path, header)
		_, _, err := open(t, config(path), "", "").Read(t.Context(), 1)
		if !errors.Is(err, stream.ErrUnusable) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", header, err)
		}
	}
}
