package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
)

// subject is what an id names: an event of either side, or one result with its members.
type subject struct {
	left, right []string
	// match is the result's whole identity in hex, empty for an event.
	match string
}

// explanation is everything known of a subject.
type explanation struct {
	id       string
	why      []string
	sections []section
}

// section is one table of an explanation; people see its columns named in shown.
type section struct {
	name  string
	table *table.Table
	shown []string
}

func newExplainCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Tell everything about one event or result",
		Long: "explain takes an event's id, of either side, or a result's match_id, of which the\n" +
			"first 8 digits are enough. It tells how the event stands and what it waits for, its\n" +
			"revisions as far as they are kept, its results (withdrawn ones too), every transition\n" +
			"with its cause, what was set aside and which rebuild settled that, and the near misses:\n" +
			"events of the other side with the same key just outside the window. Results and\n" +
			"transitions name their generation; those of candidates are seen by nobody.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.output == string(table.CSV) {
				return usageError(errors.New("explain gives several tables, which csv can't hold; " +
					"use --output json, or tally query history"))
			}
			return a.read(cmd.Context(), func(ctx context.Context, r *reading) error {
				return a.explain(ctx, r, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&a.output, "output", "table", "table or json")
	return cmd
}

func (a *app) explain(ctx context.Context, r *reading, id string) error {
	if _, err := r.serving(ctx); err != nil {
		return err
	}
	e, err := r.explain(ctx, id, subject{left: []string{id}, right: []string{id}})
	if err != nil {
		return err
	}
	if e.empty() {
		s, err := r.findMatch(ctx, id)
		if err != nil {
			return err
		}
		if e, err = r.explain(ctx, id, s); err != nil {
			return err
		}
	}
	if a.forPeople() {
		return a.showExplanation(e)
	}
	return a.writeExplanation(e)
}

var matchPrefix = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// findMatch gives the one result whose identity begins with the id.
func (r *reading) findMatch(ctx context.Context, id string) (subject, error) {
	unknown := fmt.Errorf("nothing is known of %q in reconciliation %s: it was not read yet, it left "+
		"the buffer without a result and its row was purged, or it belongs elsewhere", id,
		r.config.Name)
	prefix := strings.ToLower(id)
	if !matchPrefix.MatchString(prefix) {
		return subject{}, unknown
	}
	found, err := r.command(ctx, "explain_match", r.config.Name, prefix)
	switch {
	case err != nil:
		return subject{}, err
	case len(found.Rows) == 0:
		return subject{}, unknown
	case len(found.Rows) > 1:
		return subject{}, fmt.Errorf("%q begins %d or more results; give more digits, the first is %s",
			id, len(found.Rows), found.Rows[0][0])
	}
	row := found.Rows[0]
	return subject{match: row[0].(string), left: member(row[1]), right: member(row[2])}, nil
}

// member gives the id of one side of a result as a list, empty on the absent side.
func member(cell any) []string {
	if id, ok := cell.(string); ok {
		return []string{id}
	}
	return []string{}
}

// sections lists what an explanation holds, in the order it is told.
var explanationSections = []struct {
	name  string
	match bool // takes the result's identity
	shown string
}{
	{"revisions", false, "side id revision deleted key event_time state epoch arrived_at source " +
		"partition position attributes"},
	{"results", true, "generation kind status left_id left_revision right_id right_revision " +
		"deadline verdict differences match_id"},
	{"transitions", true, "at generation shard epoch ordinal kind left_id left_revision right_id " +
		"right_revision from_status to_status reason rebuilt_by"},
	{"corrections", false, "generation correction_id status reason side id revision deleted event_time " +
		"watermark interval_from interval_to resolved_by"},
	{"quarantine", false, "quarantine_id status reason side source partition position raw_text"},
	{"near", false, "side id event_time other_id other_revision other_time how outside_by"},
}

func (r *reading) explain(ctx context.Context, id string, s subject) (explanation, error) {
	e := explanation{id: id}
	for _, kind := range explanationSections {
		args := []any{r.config.Name, s.left, s.right}
		if kind.match {
			args = append(args, s.match)
		}
		t, err := r.command(ctx, "explain_"+kind.name, args...)
		if err != nil {
			return e, err
		}
		name := kind.name
		if name == "near" {
			name = "near_misses"
		}
		e.sections = append(e.sections, section{name, t, strings.Fields(kind.shown)})
	}
	why, err := r.why(ctx, s)
	if err != nil {
		return e, err
	}
	if s.match != "" {
		e.why = append(e.why, resultStands(e.section("results"), e.section("transitions"))...)
	}
	e.why = append(e.why, why...)
	e.why = append(e.why, correctionsStand(e.section("corrections"))...)
	return e, nil
}

func (e *explanation) empty() bool {
	for _, s := range e.sections {
		if len(s.table.Rows) > 0 {
			return false
		}
	}
	return true
}

func (e *explanation) section(name string) *table.Table {
	for _, s := range e.sections {
		if s.name == name {
			return s.table
		}
	}
	panic("explain: no section " + name)
}

// resultStands says where one result stands and what brought it there.
func resultStands(results, transitions *table.Table) []string {
	var lines []string
	for _, row := range pick(results, "kind", "match_id", "status").Rows {
		line := fmt.Sprintf("The %v result %v is %v", row[0], row[1], row[2])
		causes := pick(transitions, "reason", "shard", "epoch").Rows
		if len(causes) > 0 {
			last := causes[len(causes)-1]
			line += fmt.Sprintf(" (%v) since epoch %v of shard %v", last[0], last[2], last[1])
		}
		lines = append(lines, line+".")
	}
	return lines
}

// correctionsStand says for each correction what settles it, or has.
func correctionsStand(corrections *table.Table) []string {
	var lines []string
	for _, row := range pick(corrections, "status", "side", "id", "revision", "correction_id", "reason",
		"generation", "resolved_by", "resolved_epoch").Rows {
		line := fmt.Sprintf("Revision %v of %v event %v came too late (%v) for generation %v and was set "+
			"aside as correction %v", row[3], row[1], row[2], row[5], row[6], row[4])
		switch {
		case row[0] == "open":
			line += ": it is open, tally rebuild --auto settles it."
		case row[8] == nil:
			line += fmt.Sprintf("; generation %v settled it.", row[7])
		default:
			line += fmt.Sprintf("; generation %v settled it in epoch %v.", row[7], row[8])
		}
		lines = append(lines, line)
	}
	return lines
}

// rebuilds writes the generation of a rebuild beside the reason, in place of a column of its own.
func rebuilds(t *table.Table) *table.Table {
	reason, by := len(t.Columns)-2, len(t.Columns)-1
	short := &table.Table{Columns: t.Columns[:by]}
	for _, row := range t.Rows {
		if row[by] != nil {
			row[reason] = fmt.Sprintf("%v (generation %v)", row[reason], row[by])
		}
		short.Add(row[:by]...)
	}
	return short
}
