package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/private"
	"github.com/tallystick/tallystick/cmd/tally/internal/torture"
)

// crashLab is one call of tally torture.
type crashLab struct {
	app        *app
	config     torture.Config
	database   string
	step, mode string
	only       uint64
}

// seedsThatReachAll is from how many seeds on everything has to be reached.
const seedsThatReachAll = 200

func newTortureCommand(a *app) *cobra.Command {
	l := &crashLab{app: a}
	cmd := &cobra.Command{
		Use:   "torture",
		Short: "Break it at every step and see that it recovers",
		Long: "torture is the crash lab: for each seed it makes a scratch schema, generates records\n" +
			"(late, revised, deleted, repeated and malformed ones among them) and reconciles them\n" +
			"in worker processes that it kills, stops, cancels and cuts off at every step of an\n" +
			"epoch, and it damages stored rows between two runs. In the end the rows must be those\n" +
			"of one SQL join over the same records. It counts which faults struck and which ways of\n" +
			"recovery were taken; from 200 seeds on one that never was is a failure, too.\n\n" +
			"It uses the database and the rule of the configuration. Without one it uses a private\n" +
			"Postgres, unless --database, DATABASE_URL or PGHOST names a server, and rules of its own.",
		Example: "  tally torture                        200 seeds\n" +
			"  tally torture --seed 17              one seed again, the same in everything\n" +
			"  tally torture --step K8 --mode cut   one kind of fault",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.run(cmd.Context(), cmd.Flags().Changed("seed"))
		},
	}
	flags, c := cmd.Flags(), &l.config
	flags.IntVar(&c.Seeds, "seeds", seedsThatReachAll, "how many seeds to run, from 1 on")
	flags.Uint64Var(&l.only, "seed", 1, "run this seed alone")
	flags.StringVar(&l.step, "step", "", "only faults at this step, K0 to K12")
	flags.StringVar(&l.mode, "mode", "", "only faults of this mode: kill, stop, cancel, cut or damage")
	flags.BoolVar(&c.Keep, "keep", false, "leave the schemas in the database, to look at")
	flags.IntVar(&c.Parallel, "parallel", 2, "seeds that run at a time")
	flags.DurationVar(&c.Lease, "lease", torture.LeaseDefault, "how long a worker's lease lasts")
	flags.StringVar(&l.database, "database", "", "database to use instead of the configuration's")
	a.outputFlag(cmd)
	cmd.AddCommand(newTortureWorkerCommand(a))
	return cmd
}

func (l *crashLab) run(ctx context.Context, oneSeed bool) (err error) {
	c := &l.config
	if c.Filter, err = torture.ParseFilter(l.step, l.mode); err != nil {
		return usageError(err)
	}
	if c.First = 1; oneSeed {
		c.First, c.Seeds = l.only, 1
	}
	c.Progress = l.app.stderr
	if c.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program, to run workers of it: %w", err)
	}
	given, err := l.configured()
	if err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return usageError(err)
	}
	if !given {
		server, err := private.Start(ctx, "")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop(ctx)) }()
		c.Database = server.URL
	}
	report, err := torture.Run(ctx, *c)
	if err != nil {
		return err
	}
	return l.report(report)
}

// configured takes database and rule from the configuration, where there is one, and tells whether
// a database is given at all.
func (l *crashLab) configured() (given bool, err error) {
	c, err := l.app.config()
	if _, missing := os.Stat(l.app.configFile); errors.Is(missing, fs.ErrNotExist) {
		if l.config.Database = l.database; l.database == "" {
			l.config.Database = os.Getenv("DATABASE_URL")
		}
		return l.config.Database != "" || os.Getenv("PGHOST") != "", nil
	}
	if err != nil {
		return false, err
	}
	l.config.Rule = ruleOf(c)
	if l.config.Database = l.database; l.database == "" {
		l.config.Database = c.Database.Reveal()
	}
	return true, nil
}

// ruleOf gives the configured rule as the crash lab takes it.
func ruleOf(c *config.Config) *torture.Rule {
	r := &torture.Rule{
		Version: string(c.Rule.Version), Join: c.Rule.Join, Provisional: c.Rule.Provisional,
		Before: c.Rule.Before.Std(), After: c.Rule.After.Std(), Lateness: c.Rule.Lateness.Std(),
	}
	for _, f := range c.Rule.Compare {
		r.Compare = append(r.Compare,
			torture.Compare{Left: f.Left, Right: f.Right, Tolerance: string(f.Tolerance)})
	}
	return r
}

// report shows the counts and turns failures into an error.
func (l *crashLab) report(r *torture.Report) error {
	for i, t := range r.Tables() {
		if i > 0 {
			l.app.printf("\n")
		}
		if err := l.app.render(t); err != nil {
			return err
		}
	}
	failed, unreached := r.Failed(), r.Unreached()
	if len(unreached) > 0 {
		fmt.Fprintf(l.app.stderr, "\nnot reached: %s\n", strings.Join(unreached, ", "))
	}
	switch {
	case len(failed) > 0:
		return &exitError{exitFailed, fmt.Errorf("%d of %d seeds failed, seed %d first: %w", len(failed),
			r.Seeds, failed[0].Seed, failed[0].Err)}
	case len(unreached) > 0 && r.Seeds >= seedsThatReachAll:
		return &exitError{exitFailed, fmt.Errorf("%d of the things to reach never were in %d seeds",
			len(unreached), r.Seeds)}
	}
	return nil
}

// newTortureWorkerCommand is tally run with faults, for the crash lab alone.
func newTortureWorkerCommand(a *app) *cobra.Command {
	var faults string
	var lease time.Duration
	cmd := &cobra.Command{
		Use: torture.Command, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.tortured(cmd.Context(), faults, lease)
		},
	}
	cmd.Flags().StringVar(&faults, "faults", "{}", "the faults as JSON, by number")
	cmd.Flags().DurationVar(&lease, "lease", torture.LeaseDefault, "how long the lease lasts")
	return cmd
}

// tortured runs to the end of the sources, or to the fault that ends it.
func (a *app) tortured(ctx context.Context, faults string, lease time.Duration) error {
	var planned map[int]torture.Fault
	if err := json.Unmarshal([]byte(faults), &planned); err != nil {
		return usageError(fmt.Errorf("--faults: %w", err))
	}
	notices := os.NewFile(torture.NoticeFD, "notices")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	injector := torture.NewInjector(planned, lease, notices, stop)
	a.adaptStore, a.adaptLoop = injector.Store, injector.Loop
	return a.run(ctx, runFlags{untilEnd: true, seal: true, shards: "0"})
}
