// Package torture is the crash lab: it runs real processes of this program over generated records,
// breaks them at every step of an epoch in every way it knows, and holds what comes of it against
// one SQL join over the same records.
//
// Everything about a trial follows from its seed: the rule where none is given, the records, and
// which faults strike when. So a seed that fails can be replayed.
package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config says what is tortured and how much.
type Config struct {
	// Database is a connection string; empty leaves it to the environment.
	Database string
	// Program is the executable whose processes are the workers.
	Program string
	// Rule is the rule to use; nil draws one for each seed.
	Rule *Rule
	// First is the first seed, Seeds how many there are, Parallel how many run at a time.
	First    uint64
	Seeds    int
	Parallel int
	Filter   Filter
	// Lease is how long the workers' leases last.
	Lease time.Duration
	// Keep leaves the schemas in the database.
	Keep bool
	// Progress gets a line a seed.
	Progress io.Writer
	// run makes the names of the schemas unlike those of other labs on the same database.
	run string
}

// The branches of recovery that the lab counts itself; others come from the stored manifests.
const (
	readAgain      = "same positions read again"
	foundCommitted = "unknown commit found committed"
	foundAbsent    = "unknown commit found not committed"
	fencedLate     = "late commit of a stopped worker refused"
	refused        = "start refused with exit code 3"
)

// LeaseDefault is long enough for a busy machine and short enough to wait for.
const LeaseDefault = 400 * time.Millisecond

// horizonMax bounds the window and the lateness of the rule, so that the records' times lie between
// their start and today.
const horizonMax = 365 * 24 * time.Hour

// Validate reports the first impossible value by the name of its flag.
func (c *Config) Validate() error {
	switch {
	case c.Seeds < 1:
		return fmt.Errorf("--seeds %d: want at least 1", c.Seeds)
	case c.Parallel < 1:
		return fmt.Errorf("--parallel %d: want at least 1", c.Parallel)
	case c.Lease < 50*time.Millisecond:
		return fmt.Errorf("--lease %s: want at least 50ms", c.Lease)
	case c.First < 1:
		return errors.New("--seed 0: want at least 1")
	}
	if r := c.Rule; r != nil && max(r.Before, r.After)+r.Lateness > horizonMax {
		return fmt.Errorf("the rule's window and lateness reach over more than %s; the crash lab takes "+
			"rules up to that: name another configuration with -c", horizonMax)
	}
	return supported
}

// Run runs the trials and gives what came of them, failures included. Its own error is one that
// kept it from running them.
func Run(ctx context.Context, c Config) (*Report, error) {
	c.run = fmt.Sprintf("%06x", rand.Uint32N(1<<24))
	report := &Report{Filter: c.Filter, Seeds: c.Seeds, Results: make([]Result, c.Seeds)}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.Parallel)
	lines := make(chan string)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		for line := range lines {
			fmt.Fprintln(c.Progress, line)
		}
	}()
	for i := range c.Seeds {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t := newTrial(&c, c.First+uint64(i))
			t.result.Err = t.run(ctx)
			report.Results[i] = t.result
			lines <- t.result.line(&c)
			return ctx.Err()
		})
	}
	err := group.Wait()
	close(lines)
	<-printed
	if err != nil {
		return nil, err
	}
	return report, nil
}

// line says what came of a seed.
func (r *Result) line(c *Config) string {
	if r.Err != nil {
		return fmt.Sprintf("seed %d: FAILED after %s: %v\n  replay: %s", r.Seed, r.faultText(), r.Err,
			r.replay(c))
	}
	text := fmt.Sprintf("seed %d: %d rows, digest %s; %d epochs, %d workers, %.1fs; %s", r.Seed, r.Rows,
		r.Digest, r.Epochs, r.Runs, r.Took.Seconds(), r.faultText())
	if r.Kept != "" {
		text += "; kept in schema " + r.Kept
	}
	return text
}

func (r *Result) replay(c *Config) string {
	return fmt.Sprintf("tally torture --seed %d%s --keep", r.Seed, c.Filter)
}

// Failed gives the results of the seeds that failed.
func (r *Report) Failed() []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(r Result) bool { return r.Err == nil })
}
