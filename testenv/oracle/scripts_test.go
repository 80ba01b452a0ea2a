package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// script is a history with its outcome worked out by hand. Lists are separated by "; ".
type script struct {
	about string
	rule  Rule
	// lanes is the number of partitions a side, 1 when 0.
	lanes int
	steps []scriptStep
}

// scriptStep is one epoch. Events are written "L0 o1/2 k1 10.5 deleted '{}'": side and partition,
// id/revision, key or -, seconds after the start or -, and what else is true of it.
type scriptStep struct {
	in   string
	seal bool
	// active and aside are complete; changes and figures are checked where given.
	active, aside, changes, figures string
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, group := range [][]script{timeScripts, revisionScripts, lateScripts} {
		for _, s := range group {
			t.Run(s.about, func(t *testing.T) {
				t.Parallel()
				playScript(t, s)
			})
		}
	}
}

func playScript(t *testing.T, s script) {
	t.Helper()
	var partitions []stream.Partition
	for _, p := range singlePartitions() {
		for i := range max(s.lanes, 1) {
			partitions = append(partitions, stream.Partition{
				Side: p.Side, Source: p.Source, Number: int32(i),
			})
		}
	}
	s.rule.MaxSkew, s.rule.MaxAhead = 200*time.Second, 1000*time.Second
	m := NewModel(s.rule, partitions)
	for i, step := range s.steps {
		e := Epoch{Clock: generatorStart}
		for _, line := range list(step.in) {
			e.Slices = append(e.Slices, scriptRecord(t, line))
		}
		if step.seal {
			e.Sealed = partitions
		}
		checkStep(t, i+1, step, m.Step(e))
	}
}

func checkStep(t *testing.T, number int, step scriptStep, rep Report) {
	t.Helper()
	var aside, changes []string
	for _, a := range append(rep.Corrections, rep.Quarantined...) {
		aside = append(aside, a.String())
	}
	for _, c := range rep.Transitions {
		changes = append(changes, c.String())
	}
	n := rep.Counts
	figures := fmt.Sprintf("accepted %d duplicate %d stale %d expired %d buffered %d",
		n.Accepted, n.Duplicate, n.Stale, n.Expired, n.Buffered)
	if !slices.Equal(rep.Active, list(step.active)) {
		t.Errorf("step %d: active %q, want %q", number, rep.Active, list(step.active))
	}
	if !slices.Equal(aside, list(step.aside)) {
		t.Errorf("step %d: set aside %q, want %q", number, aside, list(step.aside))
	}
	if step.changes != "" && !slices.Equal(changes, list(step.changes)) {
		t.Errorf("step %d: changes %q, want %q", number, changes, list(step.changes))
	}
	if step.figures != "" && figures != step.figures {
		t.Errorf("step %d: %s, want %s", number, figures, step.figures)
	}
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "; ")
}

func scriptRecord(t *testing.T, line string) Slice {
	t.Helper()
	words := strings.Fields(line)
	p := singlePartitions()[strings.IndexByte("LR", words[0][0])]
	p.Number = int32(words[0][1] - '0')
	id, revision, _ := strings.Cut(words[1], "/")
	number, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		t.Fatalf("script line %q: %v", line, err)
	}
	e := stream.Event{ID: id, Revision: number, Attributes: "{}"}
	if words[2] != "-" {
		e.Key = words[2]
	}
	if words[3] != "-" {
		d, err := time.ParseDuration(words[3] + "s")
		if err != nil {
			t.Fatalf("script line %q: %v", line, err)
		}
		e.Time, e.HasTime = generatorStart.Add(d), true
	}
	for _, word := range words[4:] {
		if word == "deleted" {
			e.Deleted = true
		} else {
			e.Attributes = word
		}
	}
	return Slice{Partition: p, Records: []stream.Record{record(e, 1)}}
}
