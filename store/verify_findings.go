package store

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
)

// always is the bound of what going back repairs, to whichever epoch.
const always = math.MaxInt64

// finding is a damage, and to which epochs the shard can go back to be rid of it: those before one,
// 0 for none; and those from since on, where that is not 0.
type finding struct {
	Damage
	before, since int64
}

// repaired tells whether the damage is gone when the shard goes back to an epoch.
func (f *finding) repaired(epoch int64) bool {
	return epoch < f.before || f.since != 0 && epoch >= f.since
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
	f.list = append(f.list, finding{
		Damage: Damage{table, row, fmt.Sprintf(what, args...)}, before: before,
	})
}

// merge adds what another one found.
func (f *findings) merge(o *findings) {
	for _, d := range o.list {
		f.note(d.before, d.Table, d.Row, "%s", d.What)
	}
}

func (f *findings) empty() bool { return len(f.list) == 0 }

// before is the epoch before which all of it is undone, or that which is not from some epoch on.
func (f *findings) before() int64 {
	limit := int64(always)
	for _, d := range f.list {
		if d.since == 0 {
			limit = min(limit, d.before)
		}
	}
	return limit
}

// repaired tells whether all of it is gone when the shard goes back to an epoch.
func (f *findings) repaired(epoch int64) bool {
	return !slices.ContainsFunc(f.list, func(d finding) bool { return !d.repaired(epoch) })
}

// damage gives the findings, those of one table together.
func (f *findings) damage() []Damage {
	list := make([]Damage, len(f.list))
	for i, d := range f.list {
		list[i] = d.Damage
	}
	slices.SortStableFunc(list, func(a, b Damage) int {
		return tableOrder(a.Table) - tableOrder(b.Table)
	})
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
