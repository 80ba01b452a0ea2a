package main

import (
	_ "embed"

	"github.com/spf13/cobra"
)

//go:embed topics/runbook.md
var runbook string

// topics lists what tally help explains beside the commands.
func topics() []*cobra.Command {
	return []*cobra.Command{{
		Use:   "runbook",
		Short: "What can go wrong, how it shows, and what to do then",
		Long:  runbook,
	}}
}
