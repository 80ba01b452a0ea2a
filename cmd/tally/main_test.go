package main

import (
	"os"
	"testing"

	"github.com/tallystick/tallystick/testenv"
)

// asProgram, in the environment, makes the test binary run as the program itself, so that tests
// can kill real processes.
const asProgram = "TALLY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testenv.Main(m)
}
