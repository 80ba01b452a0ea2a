package join_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/stream"
)

// TestScripts runs testdata/*.txt: each is a story of epochs with what every one of them changes.
// With -rewrite it writes what the engine does now: read the difference before keeping it.
//
//	rule join=full before=10s after=10s lateness=1m provisional=eager
//	    begins a story with an empty store. Further arguments: ahead, skew, pairs, cache, closings,
//	    due (rows read for each range), ooo and idle (both sides'), partitions (of each side),
//	    shards and shard: which of them the story is about.
//	epoch [to=0:30] [clock=1:00] [seal=left,right] [caughtup] [in-flight] [asks]
//	    joins one epoch from the lines below it and commits it, unless in-flight; then the epoch
//	    that was in flight before is committed after it was joined, as the loop does. With to,
//	    a tombstone of the id tick at that time ends every partition: it is accepted, buffered,
//	    and moves the watermark there. With asks it prints what was looked up. Without a clock
//	    the last one stands.
//	epochs
//	    runs empty epochs for as long as the watermark is behind.
//	commit, restart [load]
//	    commits what is in flight; loses memory and what is in flight, and goes on from the store.
//	results
//	    prints the active results.
//
// A line is `SIDE[.PARTITION] ID/REVISION KEY TIME [deleted] [attribute=value …]`, with - for no
// key or no time, or `SIDE bad REASON`. Times are minutes and seconds after the start of 2026.
func TestScripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := &script{}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

// script is one story being told: the state machine over a store of what was committed.
type script struct {
	cfg        join.Config
	store      *memStore
	state      *join.State
	inFlight   *stream.Delta
	clock      stream.Micros
	partitions int
	dueMax     int
	ends       map[stream.Partition]int
	sealed     map[stream.Side]bool
	idle       map[stream.Partition]bool
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "rule":
		s.begin(t, d)
		return "ok"
	case "epoch":
		return s.epoch(t, d)
	case "epochs":
		var out strings.Builder
		for s.state.Behind() {
			out.WriteString(s.epoch(t, &datadriven.TestData{}))
		}
		return out.String()
	case "commit":
		s.commit(t)
		return "ok"
	case "restart":
		s.restart(d.HasArg("load"))
		return "ok"
	case "results":
		return strings.Join(s.store.active(), "\n") + "\n"
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return ""
}

// begin reads the rule. The defaults keep every limit out of the story's way.
func (s *script) begin(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	kind, policy := "full", string(join.Never)
	var before, after, lateness, ooo, idle string
	ahead, skew := "24h", "24h"
	limits := map[string]*int{}
	cfg := join.Config{MaxPairsPerKey: 1000, CacheRows: 1000, ClosingsMax: 1000}
	limits["pairs"], limits["cache"] = &cfg.MaxPairsPerKey, &cfg.CacheRows
	s.partitions, s.dueMax = 1, 0
	limits["closings"], limits["partitions"] = &cfg.ClosingsMax, &s.partitions
	limits["due"] = &s.dueMax
	var shard, shards int
	limits["shard"], limits["shards"] = &shard, &shards
	texts := map[string]*string{
		"join": &kind, "provisional": &policy, "before": &before, "after": &after,
		"lateness": &lateness, "ooo": &ooo, "idle": &idle, "ahead": &ahead, "skew": &skew,
	}
	for _, arg := range d.CmdArgs {
		switch {
		case limits[arg.Key] != nil:
			arg.Scan(t, 0, limits[arg.Key])
		case texts[arg.Key] != nil:
			arg.Scan(t, 0, texts[arg.Key])
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
	}
	cfg.Rule = join.Rule{
		Version: "v1", Kind: join.Kind(kind), Provisional: join.Policy(policy),
		Before: duration(t, before), After: duration(t, after), Lateness: duration(t, lateness),
	}
	if err := cfg.Validate(); err != nil {
		d.Fatalf(t, "%v", err)
	}
	cfg.Shard, cfg.Shards = int32(shard), int32(shards)
	cfg.MaxAhead, cfg.MaxSkew = duration(t, ahead), duration(t, skew)
	cfg.OutOfOrderness = [2]time.Duration{duration(t, ooo), duration(t, ooo)}
	cfg.IdleAfter = [2]time.Duration{duration(t, idle), duration(t, idle)}
	s.cfg, s.store, s.clock = cfg, newMemStore(), base
	s.ends, s.sealed = map[stream.Partition]int{}, map[stream.Side]bool{}
	s.restart(false)
}

func (s *script) restart(load bool) {
	s.inFlight, s.idle = nil, map[stream.Partition]bool{}
	for _, p := range s.store.start.Progress {
		s.idle[p.Partition] = p.Idle
	}
	s.state = s.store.restart(s.cfg, load)
}

func (s *script) commit(t *testing.T) {
	t.Helper()
	if s.inFlight == nil {
		return
	}
	if err := s.store.commit(s.inFlight); err != nil {
		t.Fatal(err)
	}
	s.state.Committed(s.inFlight.Epoch)
	s.inFlight = nil
}

func (s *script) epoch(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.HasArg("clock") {
		var text string
		d.ScanArgs(t, "clock", &text)
		s.clock = minutes(t, text)
	}
	batch := s.batch(t, d)
	if s.state.MustSpill() {
		s.commit(t)
		s.store.spill()
		s.state.Spill()
	}
	needs := s.state.Needs(batch)
	if s.dueMax > 0 {
		needs.DueMax = s.dueMax
	}
	found := s.store.fetch(needs, s.state.Watermark())
	delta := s.state.Step(batch, found)
	if !inOrder(delta.Changes) {
		d.Fatalf(t, "changes are out of order: %v", delta.Changes)
	}
	s.commit(t)
	s.inFlight = delta
	if !d.HasArg("in-flight") {
		s.commit(t)
	}
	var out strings.Builder
	if d.HasArg("asks") {
		out.WriteString(asked(needs))
	}
	out.WriteString(s.report(delta))
	return out.String()
}

func (s *script) batch(t *testing.T, d *datadriven.TestData) *stream.Batch {
	t.Helper()
	if d.HasArg("seal") {
		var text string
		d.ScanArgs(t, "seal", &text)
		for name := range strings.SplitSeq(text, ",") {
			side, err := stream.ParseSide(name)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			s.sealed[side] = true
		}
	}
	batch := &stream.Batch{Clock: s.clock}
	for _, side := range []stream.Side{stream.Left, stream.Right} {
		for n := range s.partitions {
			batch.Parts = append(batch.Parts, stream.Part{
				Partition: stream.Partition{Side: side, Source: side.String(), Number: int32(n)},
				CaughtUp:  d.HasArg("caughtup"), Sealed: s.sealed[side],
			})
		}
	}
	for line := range strings.SplitSeq(d.Input, "\n") {
		if line != "" {
			s.addRecord(t, batch, line)
		}
	}
	if d.HasArg("to") {
		var text string
		d.ScanArgs(t, "to", &text)
		s.addTicks(t, batch, text)
	}
	for i := range batch.Parts {
		if end := s.ends[batch.Parts[i].Partition]; end > 0 {
			batch.Parts[i].To = strconv.Itoa(end)
		}
	}
	return batch
}

func (s *script) addTicks(t *testing.T, batch *stream.Batch, to string) {
	t.Helper()
	for i := range batch.Parts {
		p := batch.Parts[i].Partition
		s.addRecord(t, batch, fmt.Sprintf("%s.%d tick%d/%d - %s deleted",
			p.Side, p.Number, p.Number, s.state.Epoch()+1, to))
	}
}

func (s *script) addRecord(t *testing.T, batch *stream.Batch, line string) {
	t.Helper()
	place, rest, _ := strings.Cut(line, " ")
	name, number, _ := strings.Cut(place, ".")
	n, _ := strconv.Atoi(number)
	at := slices.IndexFunc(batch.Parts, func(p stream.Part) bool {
		return p.Side.String() == name && int(p.Number) == n
	})
	if at < 0 {
		t.Fatalf("%q: no such side or partition", line)
	}
	part := &batch.Parts[at]
	s.ends[part.Partition]++
	r := stream.Record{Raw: []byte(line), Position: strconv.Itoa(s.ends[part.Partition])}
	fields := strings.Fields(rest)
	if fields[0] == "bad" {
		r.Reason = stream.Reason(fields[1])
	} else {
		r.Event = event(t, fields)
	}
	part.Records = append(part.Records, r)
}

func event(t *testing.T, fields []string) stream.Event {
	t.Helper()
	id, number, _ := strings.Cut(fields[0], "/")
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil || len(fields) < 3 {
		t.Fatalf("%v: want ID/REVISION KEY TIME", fields)
	}
	e := stream.Event{ID: id, Revision: revision}
	if fields[1] != "-" {
		e.Key = fields[1]
	}
	if fields[2] != "-" {
		e.Time, e.HasTime = minutes(t, fields[2]), true
	}
	var attributes []string
	for _, f := range fields[3:] {
		if f == "deleted" {
			e.Deleted = true
			continue
		}
		name, value, _ := strings.Cut(f, "=")
		attributes = append(attributes, fmt.Sprintf("%q:%q", name, value))
	}
	e.Attributes = "{" + strings.Join(attributes, ",") + "}"
	if !e.Deleted && (e.Key == "" || !e.HasTime) {
		t.Fatalf("%v: only a tombstone has no key or no time", fields)
	}
	return e
}
