package main

import (
	"os"
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
