package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tallystick/tallystick/cmd/tally/internal/table"
)

func (a *app) showExplanation(e explanation) error {
	for _, line := range e.why {
		a.printf("%s\n", line)
	}
	for _, s := range e.sections {
		if len(s.table.Rows) == 0 {
			continue
		}
		t := pick(s.table, s.shown...)
		switch s.name {
		case "quarantine":
			shorten(t.Rows, len(t.Columns)-1)
		case "transitions":
			t = rebuilds(t)
		case "results":
			for _, row := range t.Rows {
				at := slices.Index(t.Columns, "differences")
				row[at] = differencesInWords(row[at])
			}
		}
		a.printf("\n%s\n", strings.ReplaceAll(s.name, "_", " "))
		if err := a.show(t); err != nil {
			return err
		}
	}
	return nil
}

// differencesInWords writes the JSON of a pair's differences as people read it:
// amount 20 / 25 (+5, tolerance 0.01). What is no such JSON stays as it is.
func differencesInWords(cell any) any {
	raw, ok := cell.(json.RawMessage)
	var list []struct {
		Field                              string
		Left, Right, Difference, Tolerance *string
		Within                             bool
	}
	if !ok || json.Unmarshal(raw, &list) != nil {
		return cell
	}
	var words []string
	for _, d := range list {
		text := fmt.Sprintf("%s %s / %s", d.Field, orNothing(d.Left), orNothing(d.Right))
		var notes []string
		if d.Difference != nil {
			notes = append(notes, "+"+*d.Difference)
		}
		if d.Tolerance != nil {
			notes = append(notes, "tolerance "+*d.Tolerance)
		}
		if d.Within {
			notes = append(notes, "within")
		}
		if len(notes) > 0 {
			text += " (" + strings.ReplaceAll(strings.Join(notes, ", "), "+-", "-") + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

func orNothing(text *string) string {
	if text == nil {
		return "nothing"
	}
	return *text
}

// writeExplanation writes one JSON object with every column of every section.
func (a *app) writeExplanation(e explanation) error {
	var out bytes.Buffer
	why := e.why
	if why == nil {
		why = []string{}
	}
	head, err := json.Marshal(map[string]any{"id": e.id, "why": why})
	if err != nil {
		return err
	}
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	for _, s := range e.sections {
		fmt.Fprintf(&out, ",\n%q: ", s.name)
		if err := s.table.Write(&out, table.JSON); err != nil {
			return err
		}
		out.Truncate(out.Len() - len("\n"))
	}
	out.WriteString("\n}\n")
	_, err = a.stdout.Write(out.Bytes())
	return err
}
