package main

import (
	"context"
	"fmt"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/store"
)

// tellRebuilds prints a line for each candidate, and one for what a rebuild would settle.
func (a *app) tellRebuilds(ctx context.Context, r *reading, shards *table.Table) error {
	candidates, err := r.command(ctx, "generations", r.config.Name, string(store.Candidate))
	if err != nil {
		return err
	}
	for _, line := range candidateLines(candidates) {
		a.printf("%s\n", line)
	}
	var open int64
	for _, row := range pick(shards, "open_corrections").Rows {
		n, _ := row[0].(int64)
		open += n
	}
	if open > 0 {
		a.printf("%s open: tally rebuild --auto settles all, with --corrections those that live work is "+
			"past\n", count(open, "correction"))
	}
	return nil
}

// candidateLines say of each candidate what it is, how far it is and what validation found.
func candidateLines(candidates *table.Table) []string {
	var lines []string
	for _, row := range humane(pick(candidates, "generation", "kind", "interval_from", "interval_to",
		"rule_version", "base", "building", "watermark", "validated", "accepted_by")).Rows {
		over := "full"
		if row[1] == string(store.Interval) {
			over = fmt.Sprintf("interval %v to %v", row[2], row[3])
		}
		far := fmt.Sprintf("built, watermark %v", row[7])
		if row[6] == "yes" {
			far = "being built, its watermark is held at " + fmt.Sprint(row[7])
		}
		validated := "validation did not pass"
		switch {
		case row[8] == nil:
			validated = "not validated"
		case row[8] == "yes":
			validated = "validation passed"
		case row[9] != nil:
			validated = fmt.Sprintf("differences accepted by %v", row[9])
		}
		lines = append(lines, fmt.Sprintf("candidate %v beside generation %v: %s, rule %v: %s; %s",
			row[0], row[5], over, row[4], far, validated))
	}
	return lines
}
