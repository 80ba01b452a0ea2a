package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
	"github.com/tallystick/tallystick/cmd/tally/internal/table"
)

// The goals.
const (
	goalFloor   = 0.6
	goalSQL     = 2
	goalLatency = 150 // ms
	goalStored  = 0.9
	goalState   = 0.5
	goalRestart = 3000 // ms, of a million rows
)

// Report holds what was measured.
type Report struct {
	Settings []setting
	// Records is how many the files hold, Epochs how many epochs they made.
	Records, Epochs int64
	// Results are what end to end and SQL agree on.
	Results results

	tally, floor, sql contender
	// first is the first run end to end, with the times of the others added.
	first         *run
	small, stored comparison
	paced         *pacedFigures
	restart       *restartFigures
}

// comparison holds the records a second of runs that are different and of runs as usual.
type comparison struct{ other, usual []float64 }

// pacedFigures are those of the paced part.
type pacedFigures struct {
	run       *run
	latencies []float64
	behind    time.Duration
}

// Table gives the figures, a line each: the median over the rounds where there are several.
func (r *Report) Table(c *Config) *table.Table {
	t := &table.Table{Columns: []string{"part", "figure", "value", "unit", "goal", "met"}}
	w := writer{t}
	for _, s := range r.Settings {
		w.plain("server", s.Name, s.Value, nil)
	}
	w.plain("workload", "records", r.Records, nil)
	w.plain("workload", "epochs", r.Epochs, nil)
	w.plain("workload", "records an epoch at most", c.MaxEvents, nil)
	w.plain("workload", "rounds, each contender on fresh tables", c.Rounds, nil)
	r.endToEnd(w)
	r.ratios(w)
	r.comparisons(w)
	r.latency(w, c)
	r.restarts(w)
	return t
}

// writer adds lines.
type writer struct{ *table.Table }

func (w writer) plain(part, figure string, value, unit any) {
	w.Add(part, figure, value, unit, nil, nil)
}

func (w writer) float(part, figure string, value float64, unit string) {
	w.plain(part, figure, round(value), unit)
}

func (w writer) atLeast(part, figure string, value, goal float64, unit string) {
	w.Add(part, figure, round(value), unit, fmt.Sprintf("at least %v", goal), value >= goal)
}

func (w writer) under(part, figure string, value, goal float64, unit string) {
	w.Add(part, figure, round(value), unit, fmt.Sprintf("under %v", goal), value < goal)
}

func (r *Report) endToEnd(w writer) {
	const part = "end to end"
	w.float(part, "events", median(r.tally.perSecond), "1/s")
	w.float(part, "epoch p50, commit to commit", quantile(r.first.cycles, 0.5), "ms")
	w.float(part, "epoch p99, commit to commit", quantile(r.first.cycles, 0.99), "ms")
	w.float(part, "epoch p50, begin to commit", quantile(r.first.transactions, 0.5), "ms")
	w.float(part, "epoch p99, begin to commit", quantile(r.first.transactions, 0.99), "ms")
	w.float(part, "WAL an event", median(r.tally.wal), "bytes")
	w.float(part, "statements an epoch", r.first.statements, "")
	w.float(part, "round trips an epoch", r.first.roundTrips, "")
	w.float(part, "memory at most, without Postgres", float64(r.first.memory)/(1<<20), "MiB")
	w.plain(part, "rows buffered at most", r.first.highwater, nil)
}

func (r *Report) ratios(w writer) {
	if len(r.floor.perSecond) > 0 {
		const part = "COPY floor"
		w.float(part, "events", median(r.floor.perSecond), "1/s")
		w.float(part, "WAL an event", median(r.floor.wal), "bytes")
		w.atLeast(part, "end to end over it", median(ratios(r.tally.perSecond, r.floor.perSecond)),
			goalFloor, "")
		w.plain(part, "end to end over it, each round", each(ratios(r.tally.perSecond,
			r.floor.perSecond)), nil)
	}
	if len(r.sql.perSecond) > 0 {
		const part = "epoch in SQL"
		w.float(part, "events", median(r.sql.perSecond), "1/s")
		w.float(part, "WAL an event", median(r.sql.wal), "bytes")
		w.plain(part, "pairs, as end to end", r.Results.Pairs, nil)
		w.plain(part, "final rows, as end to end", r.Results.Final, nil)
		w.atLeast(part, "end to end over it", median(ratios(r.tally.perSecond, r.sql.perSecond)),
			goalSQL, "")
		w.plain(part, "end to end over it, each round", each(ratios(r.tally.perSecond,
			r.sql.perSecond)), nil)
	}
}

func (r *Report) comparisons(w writer) {
	for _, c := range []struct {
		part   string
		goal   float64
		values comparison
	}{
		{"state 10 times the cache", goalState, r.small},
		{"results stored", goalStored, r.stored},
	} {
		if len(c.values.other) == 0 {
			continue
		}
		list := ratios(c.values.other, c.values.usual)
		w.float(c.part, "events", median(c.values.other), "1/s")
		w.atLeast(c.part, "over the run without", median(list), c.goal, "")
		w.plain(c.part, "over the run without, each round", each(list), nil)
	}
}

func (r *Report) latency(w writer, c *Config) {
	if r.paced == nil {
		return
	}
	part := fmt.Sprintf("at %d events/s", c.Rate)
	w.plain(part, "max_delay", c.MaxDelay, nil)
	w.float(part, "available to visible p50", quantile(r.paced.latencies, 0.5), "ms")
	w.under(part, "available to visible p99", quantile(r.paced.latencies, 0.99), goalLatency, "ms")
	w.float(part, "available to visible at most", quantile(r.paced.latencies, 1), "ms")
	w.plain(part, "events", len(r.paced.latencies), nil)
	w.plain(part, "epochs", r.paced.run.epochs, nil)
	w.float(part, "statements an epoch", r.paced.run.statements, "")
	w.float(part, "round trips an epoch", r.paced.run.roundTrips, "")
	w.float(part, "writer behind at most", milliseconds(r.paced.behind), "ms")
}

func (r *Report) restarts(w writer) {
	if r.restart == nil {
		return
	}
	const part = "restart"
	w.plain(part, "rows buffered", r.restart.buffered, nil)
	w.under(part, "start to first commit, lease apart", median(r.restart.took), goalRestart, "ms")
	w.plain(part, "start to first commit, each round", each(r.restart.took), nil)
}

// ratios divides round by round.
func ratios(a, b []float64) []float64 {
	list := make([]float64, min(len(a), len(b)))
	for i := range list {
		list[i] = a[i] / b[i]
	}
	return list
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile gives the value that a share q of the values does not exceed, NaN for none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func each(values []float64) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = round(v)
	}
	return list
}

// round keeps three digits that mean something, and every digit before the point.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	digits := max(0, 2-math.Floor(math.Log10(math.Abs(v))))
	scale := math.Pow(10, digits)
	return math.Round(v*scale) / scale
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func delayOf(d time.Duration) config.Duration { return config.Duration(d) }
