package main

import (
	"errors"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/migrations"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// The exit codes, a public interface.
const (
	exitDone      = 0
	exitFailed    = 1 // worth a retry
	exitUsage     = 2 // usage or configuration
	exitIntegrity = 3
	exitPosition  = 4 // a source can't give the positions needed
	exitFenced    = 5 // another worker took over
	exitRefused   = 6 // validation refused a promotion
)

// exitError is an error whose exit code the command knows best. Without an inner error it exits
// silently: the command has said everything already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError marks an error as the user's to correct on the command line or in the configuration.
func usageError(err error) error { return &exitError{code: exitUsage, err: err} }

// sentinelCodes maps what the packages below report to exit codes; the first match counts.
var sentinelCodes = []struct {
	err  error
	code int
}{
	{config.ErrInvalid, exitUsage},
	{stream.ErrUnusable, exitUsage},
	{store.ErrRuleChanged, exitUsage},
	{store.ErrOtherRule, exitUsage},
	{migrations.ErrBehind, exitUsage},
	{store.ErrDamaged, exitIntegrity},
	{reconcile.ErrNoSnapshot, exitIntegrity},
	{store.ErrNotRetained, exitUsage},
	{store.ErrNotValidated, exitRefused},
	{stream.ErrPositionLost, exitPosition},
	{store.ErrFenced, exitFenced},
}

// exitCode gives the exit code of an error; nil is success.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if known, ok := errors.AsType[*exitError](err); ok {
		return known.code
	}
	for _, s := range sentinelCodes {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	return exitFailed
}
