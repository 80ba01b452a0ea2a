package file

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
)

func TestIdentityGrowsWithTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	write(t, path, line("a")+"\n")
	s := open(t, config(path), "", "")
	if s.Identity() != "" {
		t.Errorf("identity before anything was read: %s", s.Identity())
	}
	drain(t, s)
	small := s.Identity()
	position := fmt.Sprint(len(line("a")) + 1)
	grow(t, path, strings.Repeat(line("b")+"\n", 200))
	drain(t, s)
	if !strings.HasPrefix(s.Identity(), "sha256:4096:") {
		t.Errorf("identity of a long file: %s", s.Identity())
	}
	same, err := source(t, config(path)).Open(t.Context(), position, small)
	if err != nil || same != small {
		t.Errorf("identity %s, then %s, %v", small, same, err)
	}
	if _, err := source(t, config(path)).Open(t.Context(), position, s.Identity()); err != nil {
		t.Errorf("a later identity at an older position: %v", err)
	}

	write(t, path, line("z")+"\n"+line("b")+"\n")
	_, err = source(t, config(path)).Open(t.Context(), position, small)
	lost(t, err, "begins differently")
	_, err = source(t, config(path)).Open(t.Context(), position, s.Identity())
	lost(t, err, "shrank")
	_, err = source(t, config(path)).Open(t.Context(), "99999", "")
	lost(t, err, "bytes "+fmt.Sprint(2*(len(line("a"))+1))+" to 99999")
	_, err = source(t, config(path)).Open(t.Context(), position, "table:1")
	lost(t, err, "no file's")
	_, err = source(t, config(path)).Open(t.Context(), "0/16B3748", "")
	lost(t, err, "no byte offset")
	_, err = source(t, config(path)).Open(t.Context(), "7", "")
	lost(t, err, "inside a line")
}

// TestChangesUnderTheReader replaces, cuts, rewrites and removes a file while it's followed.
func TestChangesUnderTheReader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, path string)
		part   string
	}{
		"rotated": {func(t *testing.T, path string) {
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			write(t, path, strings.Repeat(line("n")+"\n", 9))
		}, "replaced"},
		"removed": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, "replaced"},
		"cut": {func(t *testing.T, path string) {
			if err := os.Truncate(path, 20); err != nil {
				t.Fatal(err)
			}
		}, "bytes 20 to"},
		"rewritten longer": {func(t *testing.T, path string) {
			write(t, path, strings.Repeat(line("other")+"\n", 9))
		}, "rewritten"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.ndjson")
			write(t, path, line("a")+"\n"+line("b")+"\n")
			s := open(t, config(path), "", "")
			drain(t, s)
			test.change(t, path)
			_, _, err := s.Read(t.Context(), 10)
			lost(t, err, test.part)
		})
	}
}

func TestAMissingFileIsWaitedForUnlessBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	s := open(t, config(path), "", "")
	check(t, drain(t, s))
	if err := s.Bound(t.Context()); !errors.Is(err, stream.ErrUnusable) {
		t.Errorf("bound of a missing file: %v", err)
	}
	_, err := source(t, config(path)).Open(t.Context(), "12", "")
	lost(t, err, "from 12 on")
	write(t, path, line("a")+"\n")
	check(t, drain(t, s), fmt.Sprint("a@", len(line("a"))+1))

	directory := config(filepath.Dir(path))
	directory.Format = "ndjson"
	_, err = source(t, directory).Open(t.Context(), "", "")
	if !errors.Is(err, stream.ErrUnusable) {
		t.Errorf("a directory: %v", err)
	}
}

func TestGzipIsReadWhenBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.ndjson.gz")
	zip(t, path, line("a")+"\n"+line("b")+"\n"+line("c"))
	n := len(line("a")) + 1
	unbounded := open(t, config(path), "", "")
	if _, _, err := unbounded.Read(t.Context(), 1); !errors.Is(err, stream.ErrUnusable) {
		t.Errorf("gzip without an end: %v", err)
	}
	bounded := func(position, identity string) *Source {
		s := open(t, config(path), position, identity)
		if err := s.Bound(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := bounded("", "")
	check(t, drain(t, s), fmt.Sprint("a@", n), fmt.Sprint("b@", 2*n))
	s.Seal()
	check(t, drain(t, s), fmt.Sprint("c@", 3*n-1))
	resumed := bounded(fmt.Sprint(n), s.Identity())
	check(t, drain(t, resumed), fmt.Sprint("b@", 2*n))
	_, err := source(t, config(path)).Open(t.Context(), "5000", "")
	lost(t, err, "to 5000")

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(whole[:len(whole)-6]))
	torn := source(t, config(path))
	_, err = torn.Open(t.Context(), "", "")
	if err == nil || errors.Is(err, stream.ErrPositionLost) {
		t.Errorf("half a gzip file: %v", err)
	}
}

func zip(t testing.TB, path, text string) {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.String())
}
