package torture

import (
	"github.com/tallystick/tallystick/cmd/tally/internal/table"
)

// Report is what came of all seeds.
type Report struct {
	Filter  Filter
	Seeds   int
	Results []Result
}

// branches are the ways of recovery that the lab wants to have seen, in the order shown.
var branches = []string{
	readAgain, foundCommitted, foundAbsent, fencedLate, "lease taken over",
	"fallen back to epoch N-1", "fallen back to epoch N-2", "fallen back to an older epoch",
	"replayed epochs", "replays with the same outputs", "rows kept outside memory", refused,
}

// struck counts how often each kind of fault did.
func (r *Report) struck() map[string]int {
	counts := map[string]int{}
	for i := range r.Results {
		for _, f := range r.Results[i].Struck {
			counts[f.String()]++
		}
	}
	return counts
}

// reached counts how often each branch of recovery was.
func (r *Report) reached() map[string]int64 {
	counts := map[string]int64{}
	for i := range r.Results {
		for name, n := range r.Results[i].Reached {
			counts[name] += n
		}
	}
	return counts
}

// Unreached names what was not reached of that which the filter allows. Branches of recovery are
// part of it only without a filter, since each needs faults of its own.
func (r *Report) Unreached() (names []string) {
	struck := r.struck()
	for _, cell := range r.Filter.cells() {
		if struck[cell.String()] == 0 {
			names = append(names, cell.String())
		}
	}
	if r.Filter != (Filter{}) {
		return names
	}
	reached := r.reached()
	for _, branch := range branches {
		if reached[branch] == 0 {
			names = append(names, branch)
		}
	}
	return names
}

// Tables gives the counts: steps by modes, damage by table, and branches of recovery.
func (r *Report) Tables() []*table.Table {
	struck, reached := r.struck(), r.reached()
	faults := &table.Table{
		Title:   "Faults that struck:",
		Columns: []string{"step", "where", "kill", "stop", "cancel", "cut"},
	}
	for _, s := range steps {
		row := []any{string(s.Step), s.what}
		for _, m := range []Mode{Kill, Stop, Cancel, Cut} {
			row = append(row, struck[Fault{Step: s.Step, Mode: m}.String()])
		}
		faults.Add(row...)
	}
	recovery := &table.Table{Title: "Recovery:", Columns: []string{"branch", "reached"}}
	for _, branch := range branches {
		recovery.Add(branch, reached[branch])
	}
	for _, extra := range []string{"epochs", "discarded epochs", "records read"} {
		recovery.Add(extra, reached[extra])
	}
	return []*table.Table{faults, r.damageTable(struck), recovery}
}
