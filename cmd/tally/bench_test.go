package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/testenv"
)

// benchLine is one line of the report as JSON.
type benchLine struct {
	Part, Figure string
	Value        any
	Goal         *string
	Met          *bool
}

func TestBenchReportsEveryPart(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	// It fails by itself unless the epochs in SQL publish the same pairs and final rows.
	code, stdout, stderr := execute1(t, "bench", "--database", db.Direct, "--output", "json",
		"--events", "20000", "--max-events", "2000", "--rounds", "1", "--rate", "1000",
		"--paced-for", "1s", "--stored", "1000")
	if code != exitDone {
		t.Fatalf("bench exits with %d: %s", code, stderr)
	}
	var lines []benchLine
	if err := json.Unmarshal([]byte(stdout), &lines); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	goals := map[string]string{}
	values := map[string]float64{}
	for _, l := range lines {
		name := l.Part + ": " + l.Figure
		if n, ok := l.Value.(float64); ok {
			values[name] = n
		}
		if l.Goal != nil && l.Met != nil {
			goals[name] = *l.Goal
		}
	}
	for name, want := range map[string]string{
		"COPY floor: end to end over it":                 "at least 0.6",
		"epoch in SQL: end to end over it":               "at least 2",
		"state 10 times the cache: over the run without": "at least 0.5",
		"results stored: over the run without":           "at least 0.9",
		"at 1000 events/s: available to visible p99":     "under 150",
		"restart: start to first commit, lease apart":    "under 3000",
	} {
		if goals[name] != want || values[name] <= 0 {
			t.Errorf("%s is %v with the goal %q, want more than 0 and %q", name, values[name],
				goals[name], want)
		}
	}
	for _, name := range []string{
		"end to end: events", "end to end: WAL an event", "end to end: statements an epoch",
		"end to end: memory at most, without Postgres", "epoch in SQL: pairs, as end to end",
		"epoch in SQL: final rows, as end to end",
	} {
		if values[name] <= 0 {
			t.Errorf("%s is %v, want more than 0", name, values[name])
		}
	}
	if n := values["at 1000 events/s: events"]; n < 900 || n > 1000 {
		t.Errorf("%v events were seen, want all of about 1000", n)
	}
	if n := values["restart: rows buffered"]; n < 19000 {
		t.Errorf("%v rows are buffered at the restart, want those of about 20000 events", n)
	}
	var left int
	row := db.Pool.QueryRow(t.Context(),
		"select count(*) from pg_namespace where nspname like 'tally\\_bench%'")
	if err := row.Scan(&left); err != nil || left > 0 {
		t.Errorf("%d schemas are left behind: %v", left, err)
	}
}

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{
		"--events=1", "--max-events=0", "--rounds=0", "--rate=0", "--paced-for=1ms",
		"--only=everything", "--stored=-1",
	} {
		code, _, stderr := execute1(t, "bench", flag)
		name, _, _ := strings.Cut(flag, "=")
		if code != exitUsage || !strings.Contains(stderr, name) {
			t.Errorf("bench %s exits with %d: %s", flag, code, stderr)
		}
	}
}
