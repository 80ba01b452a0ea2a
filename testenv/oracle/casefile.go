package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/tallystick/tallystick/reconcile/stream"
)

// Case is a scripted history with the right result after each step.
type Case struct {
	Name, About string
	Rule        Rule
	// Partitions are left/left/0 and right/right/0.
	Partitions []stream.Partition
	Steps      []CaseStep
}

// CaseStep is one epoch and what must hold after it.
type CaseStep struct {
	Epoch Epoch
	// Active is every active result, sorted; Corrections are those of this step alone.
	Active, Corrections []string
	Duplicate, Stale    int64
}

type caseJSON struct {
	Name, About string
	Rule        struct {
		Version, Join, Before, After, Lateness, Provisional string
	}
	OutOfOrderness string `json:"out_of_orderness"`
	Steps          []struct {
		Left, Right []eventJSON
		Expect      struct {
			Active, Corrections []string
			Duplicate, Stale    int64
		}
	}
}

type eventJSON struct {
	ID       string     `json:"id"`
	Revision int64      `json:"revision"`
	Key      string     `json:"key,omitempty"`
	Time     *time.Time `json:"time,omitempty"`
	Deleted  bool       `json:"deleted,omitempty"`

	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// LoadCase reads the case in the JSON file at path. Its clock is far ahead of its events.
func LoadCase(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read case: %w", err)
	}
	var in caseJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("decode case %s: %w", path, err)
	}
	c := &Case{Name: in.Name, About: in.About, Partitions: singlePartitions()}
	if c.Rule, err = in.rule(); err != nil {
		return nil, fmt.Errorf("rule of case %s: %w", path, err)
	}
	var read [2]int
	for _, step := range in.Steps {
		epoch := Epoch{Clock: caseClock}
		for s, events := range [2][]eventJSON{step.Left, step.Right} {
			slice := Slice{Partition: c.Partitions[s]}
			for _, e := range events {
				read[s]++
				slice.Records = append(slice.Records, record(e.event(), read[s]))
			}
			epoch.Slices = append(epoch.Slices, slice)
		}
		want := step.Expect
		c.Steps = append(c.Steps, CaseStep{
			epoch, want.Active, want.Corrections, want.Duplicate, want.Stale,
		})
	}
	return c, nil
}

var caseClock = stream.MicrosOf(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))

func singlePartitions() []stream.Partition {
	return []stream.Partition{
		{Side: stream.Left, Source: "left"}, {Side: stream.Right, Source: "right"},
	}
}

func (in *caseJSON) rule() (Rule, error) {
	r := Rule{
		Version: in.Rule.Version, Join: in.Rule.Join, Provisional: in.Rule.Provisional,
		MaxSkew: 5 * time.Minute, MaxAhead: 24 * time.Hour,
	}
	var disorder time.Duration
	for _, d := range []struct {
		text string
		to   *time.Duration
	}{
		{in.Rule.Before, &r.Before},
		{in.Rule.After, &r.After},
		{in.Rule.Lateness, &r.Lateness},
		{in.OutOfOrderness, &disorder},
	} {
		var err error
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return Rule{}, err
		}
	}
	r.OutOfOrderness = [2]time.Duration{disorder, disorder}
	return r, nil
}

func (e eventJSON) event() stream.Event {
	ev := stream.Event{
		ID: e.ID, Revision: e.Revision, Key: e.Key, Deleted: e.Deleted, Attributes: "{}",
	}
	if len(e.Attributes) > 0 {
		ev.Attributes = string(e.Attributes)
	}
	if e.Time != nil {
		ev.Time, ev.HasTime = stream.MicrosOf(*e.Time), true
	}
	return ev
}

// record wraps an event as the ordinal-th record of its partition, counted from 1.
func record(e stream.Event, ordinal int) stream.Record {
	return stream.Record{Event: e, Raw: rawJSON(e), Position: strconv.Itoa(ordinal)}
}

func rawJSON(e stream.Event) []byte {
	out := eventJSON{
		ID: e.ID, Revision: e.Revision, Key: e.Key, Deleted: e.Deleted,
		Attributes: json.RawMessage(e.Attributes),
	}
	if e.HasTime {
		at := e.Time.Time()
		out.Time = &at
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("oracle: encode %+v: %v", out, err))
	}
	return raw
}
