package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// execute1 runs one command line.
func execute1(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodesOfErrors(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		exitDone:   {nil},
		exitFailed: {errors.New("anything")},
		exitUsage: {
			usageError(errors.New("x")), config.ErrInvalid, stream.ErrUnusable,
			store.ErrRuleChanged, store.ErrOtherRule,
		},
		exitPosition: {stream.ErrPositionLost},
		exitFenced:   {store.ErrFenced},
		exitRefused:  {&exitError{code: exitRefused}},
	} {
		for _, err := range errs {
			if err != nil {
				err = fmt.Errorf("outer: %w", err)
			}
			if got := exitCode(err); got != want {
				t.Errorf("%v exits with %d, want %d", err, got, want)
			}
		}
	}
}

func TestUsageErrorsExitWithTwo(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	cases := map[string][]string{
		"no file":            {"check", "-c", absent},
		"no file to run":     {"run", "-c", absent},
		"unknown command":    {"recon"},
		"unknown flag":       {"run", "--fast"},
		"bad argument":       {"migrate", "sideways"},
		"log level":          {"check", "--log-level", "loud"},
		"log format":         {"check", "--log-format", "xml"},
		"output":             {"check", "--output", "html"},
		"seal alone":         {"run", "--seal"},
		"share":              {"generate", "--late", "2", "--dir", t.TempDir()},
		"events":             {"generate", "--events", "0", "--dir", t.TempDir()},
		"format":             {"generate", "--format", "xml", "--dir", t.TempDir()},
		"start":              {"generate", "--start", "now", "--dir", t.TempDir()},
		"demo in no new dir": {"demo", "--dir", t.TempDir()},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := execute1(t, args...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d; %s%s", code, exitUsage, stdout, stderr)
			}
			if stdout+stderr == "" {
				t.Error("it says nothing")
			}
		})
	}
}

func TestInitWritesAConfigurationOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tally.yaml")
	if code, _, stderr := execute1(t, "init", "-c", path); code != exitDone {
		t.Fatal(stderr)
	}
	if _, err := config.Load(path); err != nil {
		t.Error(err)
	}
	code, _, stderr := execute1(t, "init", "-c", path)
	if code != exitUsage || !strings.Contains(stderr, "--force") {
		t.Errorf("a second time: %d, %s", code, stderr)
	}
	if code, _, stderr := execute1(t, "init", "-c", path, "--force"); code != exitDone {
		t.Error(stderr)
	}
}

func TestGenerateWritesWhatItsConfigurationReads(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"ndjson", "csv"} {
		dir := t.TempDir()
		code, _, stderr := execute1(t, "generate", "--dir", dir, "--events", "500", "--malformed", "0",
			"--format", format)
		if code != exitDone {
			t.Fatal(stderr)
		}
		c, err := config.Load(filepath.Join(dir, config.FileDefault))
		if err != nil {
			t.Fatal(err)
		}
		sources, err := newSources(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			if _, err := source.Open(t.Context(), "", ""); err != nil {
				t.Fatal(err)
			}
			records, atEnd, err := source.Read(t.Context(), 1000)
			if err != nil || !atEnd {
				t.Fatalf("%s: %v, at end %v", source.Partition(), err, atEnd)
			}
			for _, r := range records[:100] {
				if r.Reason != "" {
					t.Errorf("%s: %s: %s", source.Partition(), r.Reason, r.Raw)
				}
			}
		}
		if err := closeSources(sources); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "payments."+format)); err != nil {
			t.Error(err)
		}
	}
}
