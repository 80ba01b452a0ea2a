package main

import (
	"os"
	"testing"
	"time"
)

// long, in the environment, runs the tests of faults at their full size.
const long = "TALLY_LONG"

// rounds gives how much a test does: the second number where there is time.
func rounds(short, full int) int {
	if os.Getenv(long) != "" {
		return full
	}
	return short
}

// waitUntil waits for a condition, which it looks at every so often.
func (p *project) waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}
