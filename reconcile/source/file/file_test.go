package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
)

const eventsMax = 1000

func config(path string) Config {
	return Config{
		Side: stream.Right, Path: path,
		Mapping: record.Mapping{
			ID: "id", Key: []string{"k"}, Time: "t", MaxEventBytes: 300, Numeric: []string{"n"},
		},
	}
}

func source(t testing.TB, config Config) *Source {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func open(t testing.TB, config Config, position, identity string) *Source {
	t.Helper()
	s := source(t, config)
	if _, err := s.Open(t.Context(), position, identity); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func grow(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// drain reads to the present end, and says each record as id@position or reason@position.
func drain(t testing.TB, s *Source) []string {
	t.Helper()
	var said []string
	for {
		records, atEnd, err := s.Read(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) > 3 {
			t.Fatalf("asked for 3 records, got %d", len(records))
		}
		for _, r := range records {
			name := r.Event.ID
			if r.Reason != "" {
				name = string(r.Reason)
			}
			said = append(said, name+"@"+r.Position)
		}
		if atEnd {
			return said
		}
	}
}

func check(t testing.TB, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func line(id string) string {
	return `{"id":"` + id + `","k":1,"t":"2024-01-01T00:00:00Z"}`
}

func lost(t testing.TB, err error, part string) {
	t.Helper()
	if !errors.Is(err, stream.ErrPositionLost) || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, want ErrPositionLost with %q", err, part)
	}
}

func TestLinesHavePositionsPastTheirNewline(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	n := len(line("a"))
	write(t, path, "\xef\xbb\xbf"+line("a")+"\r\n\n \t\r\n"+line("b")+"\n"+line("c"))
	s := open(t, config(path), "", "")
	first, second := 3+n+2, 3+n+2+1+4+n+1
	check(t, drain(t, s), fmt.Sprint("a@", first), fmt.Sprint("b@", second))
	if got := s.Partition().String(); got != "right/a.ndjson/0" {
		t.Errorf("partition %s", got)
	}

	// The half line waits for its newline; the next Read has both what completes it and more.
	grow(t, path, "\n"+line("d")+"\n")
	check(t, drain(t, s), fmt.Sprint("c@", second+n+1), fmt.Sprint("d@", second+2*(n+1)))

	resumed := open(t, config(path), fmt.Sprint(first), "")
	check(t, drain(t, resumed), fmt.Sprint("b@", second), fmt.Sprint("c@", second+n+1),
		fmt.Sprint("d@", second+2*(n+1)))
}

func TestSealDeliversTheLastLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, line("a")+"\n"+line("b"))
	s := open(t, config(path), "", "")
	n := len(line("a"))
	check(t, drain(t, s), fmt.Sprint("a@", n+1))
	s.Seal()
	check(t, drain(t, s), fmt.Sprint("b@", 2*n+1))
	check(t, drain(t, s))

	again := open(t, config(path), fmt.Sprint(2*n+1), s.Identity())
	check(t, drain(t, again))
	grow(t, path, "x\n")
	_, err := source(t, config(path)).Open(t.Context(), fmt.Sprint(2*n+1), "")
	lost(t, err, "inside a line")
}

func TestBoundFixesTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, line("a")+"\n")
	s := open(t, config(path), "", "")
	if err := s.Bound(t.Context()); err != nil {
		t.Fatal(err)
	}
	grow(t, path, line("b")+"\n")
	check(t, drain(t, s), fmt.Sprint("a@", len(line("a"))+1))
	check(t, drain(t, s))

	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	cut := source(t, config(path))
	_, err := cut.Open(t.Context(), fmt.Sprint(len(line("a"))+1), "")
	lost(t, err, "bytes 10 to")
}

// TestBadLines has one line for each way a line can be bad: each is delivered with its reason
// and whole, and the good lines around them are read.
func TestBadLines(t *testing.T) {
	t.Parallel()
	const at = `"t":"2024-01-01T00:00:00Z"`
	bad := []struct {
		want stream.Reason
		line string
	}{
		{stream.NotJSON, `{"id":`},
		{stream.NotObject, `[1]`},
		{stream.MissingID, `{"k":1,` + at + `}`},
		{stream.MissingKey, `{"id":1,` + at + `}`},
		{stream.BadTime, `{"id":1,"k":1}`},
		{stream.BadType, `{"id":[],"k":1,` + at + `}`},
		{stream.NulCharacter, "{\"id\":\"\x00\",\"k\":1," + at + "}"},
		{stream.NulCharacter, `{"id":"\u0000","k":1,` + at + `}`},
		{stream.BadUTF8, "{\"id\":\"\xff\",\"k\":1," + at + "}"},
		{stream.DuplicateField, `{"id":1,"id":1,"k":1,` + at + `}`},
		{stream.BadNumber, `{"id":1,"k":1,"n":"NaN",` + at + `}`},
		{stream.NotJSON, `{"id":1,"k":1,"n":NaN,` + at + `}`},
		{stream.TooLarge, `{"id":"` + strings.Repeat("x", 400) + `"}`},
		{stream.TooLarge, strings.Repeat("y", 3*blockBytes)},
	}
	var text strings.Builder
	for i, b := range bad {
		text.WriteString(b.line + "\n" + line(fmt.Sprint("good", i)) + "\n")
	}
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, text.String())
	s := open(t, config(path), "", "")
	records, atEnd, err := s.Read(t.Context(), eventsMax)
	if err != nil || !atEnd || len(records) != 2*len(bad) {
		t.Fatalf("%d records, at end %v, %v", len(records), atEnd, err)
	}
	for i, b := range bad {
		got := records[2*i]
		if kept := b.line[:min(len(b.line), 300)]; got.Reason != b.want || string(got.Raw) != kept {
			t.Errorf("%.40q: reason %q, %d bytes kept; want %q", b.line, got.Reason, len(got.Raw), b.want)
		}
		if next := records[2*i+1]; next.Event.ID != fmt.Sprint("good", i) {
			t.Errorf("after %.40q: %+v", b.line, next)
		}
	}
}

func TestNumbersKeepTheirText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, `{"id":1,"k":9007199254740993,"n":1.10,"t":"2024-01-01T00:00:00Z"}`+"\n")
	records, _, err := open(t, config(path), "", "").Read(t.Context(), 1)
	if err != nil || records[0].Event.Key != "9007199254740993" ||
		records[0].Event.Attributes != `{"n":1.10}` {
		t.Errorf("%v %+v", err, records)
	}
}

func TestAThousandBadLinesAreAllDelivered(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, strings.Repeat("{broken\n", eventsMax)+line("good")+"\n")
	records, _, err := open(t, config(path), "", "").Read(t.Context(), 2*eventsMax)
	if err != nil || len(records) != eventsMax+1 || records[eventsMax].Event.ID != "good" {
		t.Errorf("%d records, %v", len(records), err)
	}
}

func TestALongLineIsNeverHeldWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, strings.Repeat("z", 40*blockBytes))
	s := open(t, config(path), "", "")
	check(t, drain(t, s))
	if got := cap(s.window.block); got > 2*blockBytes {
		t.Errorf("the window holds %d bytes", got)
	}
	grow(t, path, "zz\n"+line("a")+"\n")
	size := 40*blockBytes + 3
	check(t, drain(t, s), fmt.Sprint("too_large@", size), fmt.Sprint("a@", size+len(line("a"))+1))
	write(t, path, strings.Repeat("z", 2*blockBytes))
	sealed := open(t, config(path), "", "")
	sealed.Seal()
	check(t, drain(t, sealed), fmt.Sprint("too_large@", 2*blockBytes))
}

func TestConfigurationFaults(t *testing.T) {
	t.Parallel()
	for part, change := range map[string]func(*Config){
		"path":      func(c *Config) { c.Path = "" },
		"format":    func(c *Config) { c.Path = "a.txt" },
		"xml":       func(c *Config) { c.Path = "a.xml" },
		"delimiter": func(c *Config) { c.Delimiter = '"' },
		"poll":      func(c *Config) { c.Poll = -1 },
		"id":        func(c *Config) { c.Mapping.ID = "" },
	} {
		c := config("a.ndjson")
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	s := source(t, config("x/a.CSV.gz"))
	if s.config.Format != "csv" || s.config.Name != "a.CSV.gz" || s.PollInterval() != PollDefault {
		t.Errorf("defaults: %+v", s.config)
	}
}

func TestACancelledReadStops(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, line("a")+"\n")
	s := open(t, config(path), "", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Read(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkRead reads a million lines of 180 bytes.
func BenchmarkRead(b *testing.B) {
	const lines = 1_000_000
	path := filepath.Join(b.TempDir(), "a.ndjson")
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, `{"payment_id":"p-%08d","account":"acc-%08d","currency":"EUR",`+
			`"occurred_at":"2024-03-01T12:34:56.123456Z","amount":1234.50,`+
			`"note":"invoice 2024-03 settled by card, thanks a lot"}`+"\n", i, i%5000)
	}
	write(b, path, text.String())
	c := Config{Path: path, Mapping: record.Mapping{
		ID: "payment_id", Key: []string{"account", "currency"}, Time: "occurred_at",
	}}
	for b.Loop() {
		s := open(b, c, "", "")
		count := 0
		for atEnd := false; !atEnd; {
			var records []stream.Record
			var err error
			if records, atEnd, err = s.Read(b.Context(), 10_000); err != nil {
				b.Fatal(err)
			}
			count += len(records)
		}
		if count != lines {
			b.Fatalf("%d records", count)
		}
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
