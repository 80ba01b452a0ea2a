package main

import "github.com/spf13/cobra"

// commands lists every command, in the order of a user's first day.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newDemoCommand(a),
		newInitCommand(a),
		newMigrateCommand(a),
		newCheckCommand(a),
		newRunCommand(a),
		newStatusCommand(a),
		newExplainCommand(a),
		newVerifyCommand(a),
		newRestoreCommand(a),
		newCorrectionsCommand(a),
		newRebuildCommand(a),
		newGenerationCommand(a),
		newQuarantineCommand(a),
		newQueryCommand(a),
		newGenerateCommand(a),
		newBenchCommand(a),
		newTortureCommand(a),
	}
}
