package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/migrations"
)

func newMigrateCommand(a *app) *cobra.Command {
	var roles bool
	cmd := &cobra.Command{
		Use:   "migrate [up|down|status|version]",
		Short: "Create or update the tables, under a lock",
		Long: "migrate brings the schema that tally.yaml names to this program's version. up (the\n" +
			"default) creates the schema and applies what is pending, down undoes the newest\n" +
			"migration and drops what was in its tables, status lists all of them, version prints\n" +
			"the number of the newest one applied. up --roles also creates the roles tally_owner\n" +
			"(owns the schema), tally_worker (runs tally run, changes no table) and tally_reader\n" +
			"(views and functions), to be granted to those who log in.",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"up", "down", "status", "version"},
		RunE: func(cmd *cobra.Command, args []string) error {
			step := "up"
			if len(args) > 0 {
				step = args[0]
			}
			if roles && step != "up" {
				return usageError(errors.New("--roles goes with migrate up"))
			}
			return a.migrate(cmd.Context(), step, roles)
		},
	}
	cmd.Flags().BoolVar(&roles, "roles", false, "with up: create the roles and grant them their rights")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) migrate(ctx context.Context, step string, roles bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	conn, err := connConfig(c.Database)
	if err != nil {
		return err
	}
	switch step {
	case "up":
		err = migrations.Up(ctx, conn, c.Schema, a.logger)
		if err == nil && roles {
			err = migrations.CreateRoles(ctx, conn, c.Schema)
		}
	case "down":
		err = migrations.Down(ctx, conn, c.Schema, a.logger)
	}
	if err != nil {
		return err
	}
	list, err := migrations.List(ctx, conn, c.Schema)
	if err != nil {
		return err
	}
	if step == "status" {
		return a.render(migrationTable(list))
	}
	if step == "version" {
		a.printf("%d\n", newest(list))
		return nil
	}
	a.printf("schema %s is at version %d\n", c.Schema, newest(list))
	return nil
}

func migrationTable(list []migrations.Status) *table.Table {
	t := &table.Table{Columns: []string{"version", "name", "applied"}}
	for _, m := range list {
		t.Add(m.Version, m.Name, m.Applied)
	}
	return t
}

// newest is the version of the newest migration applied, 0 before the first.
func newest(list []migrations.Status) int64 {
	var version int64
	for _, m := range list {
		if m.Applied {
			version = max(version, m.Version)
		}
	}
	return version
}
