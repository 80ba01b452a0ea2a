package store

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
)

// always is the bound of what going back repairs, to whichever epoch.
const always = math.MaxInt64

// finding is a damage, and before which epoch the shard must go back to be rid of it: 0 when no
// epoch helps.
type finding struct {
	Damage
	before int64
}

// findings gathers what is damaged, each row once.
type findings struct {
	list []finding
	seen map[[2]string]int
}

// note adds a damaged row. Of several findings about it the first is told; the one that goes back
// furthest counts.
func (f *findings) note(before int64, table, row, what string, args ...any) {
	name := [2]string{table, row}
	if i, known := f.seen[name]; known {
		f.list[i].before = min(f.list[i].before, before)
		return
	}
	if f.seen == nil {
		f.seen = map[[2]string]int{}
	}
	f.seen[name] = len(f.list)
	f.list = append(f.list, finding{Damage{table, row, fmt.Sprintf(what, args...)}, before})
}

// merge adds what another one found.
func (f *findings) merge(o *findings) {
	for _, d := range o.list {
		f.note(d.before, d.Table, d.Row, "%s", d.What)
	}
}

func (f *findings) empty() bool { return len(f.list) == 0 }

// before is the epoch before which all of it is undone.
func (f *findings) before() int64 {
	limit := int64(always)
	for _, d := range f.list {
		limit = min(limit, d.before)
	}
	return limit
}

// damage gives the findings, those of one table together.
func (f *findings) damage() []Damage {
	list := make([]Damage, len(f.list))
	for i, d := range f.list {
		list[i] = d.Damage
	}
	slices.SortStableFunc(list, func(a, b Damage) int { return tableOrder(a.Table) - tableOrder(b.Table) })
	return list
}

// tableOrder orders the tables from the head of a shard to its rows.
func tableOrder(table string) int {
	return slices.Index([]string{
		"generation", "serving", "shard", "attempt", "epoch", "source_offset", "buffer", "match",
		"match_transition", "correction", "quarantine",
	}, table)
}

func uuidText(id [16]byte) string { return uuid.UUID(id).String() }
