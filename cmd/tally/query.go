package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
	"github.com/tallystick/tallystick/queries"
)

func newQueryCommand(a *app) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "query NAME [name=value …]",
		Short: "Answer one of the named analyst queries",
		Long: "query runs a named query with the parameters given. --list shows all of them;\n" +
			"--list NAME shows the parameters and columns of one. The queries see every\n" +
			"reconciliation of the schema; reconciliation=NAME restricts them to one.",
		Example: "  tally query --list\n  tally query open-by-age attribute=amount\n" +
			"  tally query match-rate bucket=hour from=2026-01-31 --output csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list && len(args) == 0:
				return a.listQueries()
			case list && len(args) == 1:
				return a.describeQuery(args[0])
			case list:
				return usageError(errors.New("query --list takes at most one name"))
			case len(args) == 0:
				return usageError(errors.New("which query? tally query --list shows them all"))
			}
			return a.query(cmd.Context(), args[0], args[1:])
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the queries, or what one takes and gives")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) query(ctx context.Context, name string, words []string) error {
	q, err := namedQuery(name)
	if err != nil {
		return err
	}
	args, err := arguments(words)
	if err != nil {
		return usageError(err)
	}
	if _, _, err := q.Bind("", args); err != nil {
		return usageError(err)
	}
	return a.read(ctx, func(ctx context.Context, r *reading) error {
		sql, values, err := q.Bind(r.schema, args)
		if err != nil {
			return usageError(err)
		}
		t, err := r.query(ctx, sql, values...)
		if err != nil {
			return fmt.Errorf("run query %s: %w", name, err)
		}
		return a.show(t)
	})
}

func namedQuery(name string) (queries.Query, error) {
	q, err := queries.Named(name)
	if errors.Is(err, queries.ErrUnknown) {
		return q, usageError(err)
	}
	return q, err
}

// arguments reads name=value words; a value may hold further equals signs.
func arguments(words []string) (map[string]string, error) {
	args := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want name=value", word)
		}
		if _, twice := args[name]; twice {
			return nil, fmt.Errorf("parameter %s is given twice", name)
		}
		args[name] = value
	}
	return args, nil
}

func (a *app) listQueries() error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	t := &table.Table{Columns: []string{"name", "question", "parameters"}}
	for _, q := range all {
		var parameters []string
		for _, p := range q.Parameters {
			text := p.Name
			if !p.Required {
				text += "=" + p.Default
			}
			parameters = append(parameters, text)
		}
		t.Add(q.Name, q.Question, strings.Join(parameters, " "))
	}
	if a.forPeople() {
		t = pick(t, "name", "question")
	}
	return a.render(t)
}

func (a *app) describeQuery(name string) error {
	q, err := namedQuery(name)
	if err != nil {
		return err
	}
	t := &table.Table{
		Title:   q.Question,
		Columns: []string{"what", "name", "type", "default", "about"},
	}
	for _, p := range q.Parameters {
		var value any = p.Default
		if p.Required {
			value = nil
		}
		t.Add("parameter", p.Name, p.Type, value, p.About)
	}
	for _, c := range q.Columns {
		t.Add("column", c.Name, nil, nil, c.About)
	}
	return a.render(t)
}
