package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/store"
)

// app is what the commands share: the global flags, where output goes, and how to reach the
// configuration and the database.
type app struct {
	stdout, stderr io.Writer
	configFile     string
	logLevel       string
	logFormat      string
	output         string
	// logger is ready once a command runs; it writes to standard error.
	logger *slog.Logger
	// adaptStore and adaptLoop, where set, change how a run reaches the store and goes on: the crash
	// lab breaks them.
	adaptStore func(*store.Config)
	adaptLoop  func(*reconcile.Config)
	// running is false while cobra still checks the command line: an error before is a usage error.
	running bool
}

// execute runs one command line and gives the exit code. Results go to stdout, all else to stderr.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if !a.running {
		err = usageError(err)
	}
	if err.Error() != "" {
		fmt.Fprintln(stderr, "tally:", err)
	}
	return exitCode(err)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "tally",
		Short: "Reconcile two event streams in Postgres, exactly",
		Long: "tally joins two event streams, says which events found their other half, and keeps\n" +
			"that answer right through crashes, replays, late data and corrections. Offsets,\n" +
			"watermark, buffered rows and results live in Postgres and change in one transaction.\n\n" +
			"To see it work: tally demo. On your own streams: tally init, adjust tally.yaml, tally\n" +
			"migrate, tally check, tally run; then look with tally status, explain and query, or in\n" +
			"SQL, at the view results first.\n\n" +
			"Results go to standard output, all else to standard error. Exit codes: 0 done; 1 failed,\n" +
			"worth a retry; 2 usage or configuration; 3 stored rows are damaged; 4 a source can't give\n" +
			"what follows the position reached; 5 another worker took over.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.configFile, "config", "c", config.FileDefault, "configuration file")
	flags.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&a.logFormat, "log-format", "text", "text or json")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(commands(a)...)
	root.AddCommand(topics()...)
	wrap(a, root)
	return root
}

// wrap makes every command below c set up the shared parts before it runs.
func wrap(a *app, c *cobra.Command) {
	if inner := c.RunE; inner != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if err := a.prepare(); err != nil {
				return err
			}
			a.running = true
			return inner(cmd, args)
		}
	} else if c.HasSubCommands() && c.HasParent() {
		requireSubcommand(c)
	}
	for _, sub := range c.Commands() {
		wrap(a, sub)
	}
}

// requireSubcommand makes a group of commands refuse a name it doesn't know, which cobra would
// answer with the help text and success.
func requireSubcommand(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q for %q; see %s --help", args[0],
				cmd.CommandPath(), cmd.CommandPath())
		}
		return cmd.Help()
	}
}

// prepare checks the global flags and opens the log.
func (a *app) prepare() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return fmt.Errorf("--log-level %q: want debug, info, warn or error", a.logLevel)
	}
	if a.output != "" {
		if _, err := table.ParseFormat(a.output); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	options := &slog.HandlerOptions{Level: level}
	switch strings.ToLower(a.logFormat) {
	case "text":
		a.logger = slog.New(slog.NewTextHandler(a.stderr, options))
	case "json":
		a.logger = slog.New(slog.NewJSONHandler(a.stderr, options))
	default:
		return fmt.Errorf("--log-format %q: want text or json", a.logFormat)
	}
	return nil
}

// config reads the configuration file. Its errors name file, line and key, and exit with 2.
func (a *app) config() (*config.Config, error) { return config.Load(a.configFile) }

// outputFlag gives a command that renders tables its --output flag.
func (a *app) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.output, "output", "table", "table, json or csv")
}

// render writes a table to standard output in the format of --output.
func (a *app) render(t *table.Table) error {
	format, err := table.ParseFormat(a.output)
	if err != nil {
		return usageError(fmt.Errorf("--output: %w", err))
	}
	return t.Write(a.stdout, format)
}

// printf writes a line of plain results to standard output.
func (a *app) printf(format string, args ...any) {
	fmt.Fprintf(a.stdout, format, args...)
}
