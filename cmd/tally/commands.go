package main

import "github.com/spf13/cobra"

// commands lists every command, in the order of a user's first day.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newInitCommand(a),
		newMigrateCommand(a),
		newCheckCommand(a),
		newRunCommand(a),
		newGenerateCommand(a),
	}
}
