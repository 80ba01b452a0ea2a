//go:build !unix

package torture

import (
	"errors"
	"os"
)

var supported = errors.New("the crash lab stops and resumes processes by Unix signals")

func killSelf() { os.Exit(1) }

func stopSelf() {}

func resume(*os.Process) error { return supported }
