package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tallystick/tallystick/queries"
	"github.com/tallystick/tallystick/reconcile"
	"github.com/tallystick/tallystick/reconcile/join"
	"github.com/tallystick/tallystick/reconcile/source/file"
	"github.com/tallystick/tallystick/reconcile/source/record"
	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/testenv"
	"github.com/tallystick/tallystick/testenv/oracle"
)

// fact is one record of the tests below: a revision, and a time of day or none.
type fact struct {
	id       string
	revision int
	at       string
	deleted  bool
}

// facts have every way in which an id can concern the event times from ten to eleven, or not.
// soFar of them are there when the serving generation stands where the rebuild ends.
var facts = []fact{
	{id: "10", revision: 1, at: "09:59:59.999999"},
	{id: "11", revision: 1, at: "09:00:00"}, // moves in
	{id: "12", revision: 1, at: "10:00:00"}, // moves out
	{id: "13", revision: 1, at: "11:00:00"},
	{id: "14", revision: 1, at: "10:59:59.999999"},
	{id: "11", revision: 2, at: "10:30:00"},
	{id: "12", revision: 2, at: "12:00:00"},
	{id: "15", revision: 2, at: "10:20:00"},
	{id: "99", revision: 1, at: "10:20:00"}, // no key
	{id: "14", revision: 2, deleted: true},  // no time
	{id: "15", revision: 1, at: "08:00:00"}, // older, and after it
	{id: "16", revision: 1, at: "08:00:00"},
	{id: "16", revision: 2, deleted: true},
	{id: "17", revision: 1, deleted: true, at: "10:10:00"},
	{id: "12", revision: 3, at: "09:00:00"},
	{id: "10", revision: 2, at: "10:10:00"}, // too late to be read
	{id: "11", revision: 3, at: "10:10:00"},
}

const soFar = 15

var concerned = []string{
	"11/1", "12/1", "14/1", "11/2", "12/2", "15/2", "14/2", "15/1", "17/1", "12/3",
}

func tenToEleven() stream.Range {
	at := func(hour int) stream.Micros {
		return stream.MicrosOf(time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC))
	}
	return stream.Range{From: at(10), To: at(11)}
}

func (f fact) time() string {
	if f.at == "" {
		return ""
	}
	return "2026-03-01T" + f.at + "Z"
}

func (f fact) key() string {
	if f.id == "99" {
		return ""
	}
	return "k"
}

func factMapping() record.Mapping {
	return record.Mapping{
		ID: "id", Revision: "revision", Key: []string{"key"}, Time: "at", Deleted: "deleted",
	}
}

func ndjson(list []fact) string {
	var b strings.Builder
	for _, f := range list {
		time, key := `"`+f.time()+`"`, `"`+f.key()+`"`
		if f.at == "" {
			time = "null"
		}
		fmt.Fprintf(&b, `{"id":"%s","revision":%d,"at":%s,"deleted":%v,"key":%s}`+"\n\n",
			f.id, f.revision, time, f.deleted, key)
	}
	return b.String() + `{"half a line`
}

func csv(list []fact) string {
	b := strings.Builder{}
	b.WriteString("deleted,at,revision,id,key\r\n")
	for _, f := range list {
		fmt.Fprintf(&b, "%v,%s,%d,%s,\"%s\"\r\n", f.deleted, f.time(), f.revision, f.id, f.key())
	}
	return b.String()
}

// readAll opens a source and reads it to its end; each record as id/revision.
func readAll(t *testing.T, s reconcile.Source, position string) ([]stream.Record, []string) {
	t.Helper()
	if _, err := s.Open(t.Context(), position, ""); err != nil {
		t.Fatal(err)
	}
	var all []stream.Record
	for {
		records, atEnd, err := s.Read(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) == 0 && !atEnd || len(records) > 2 {
			t.Fatalf("%d records of 2, at end: %v", len(records), atEnd)
		}
		all = append(all, records...)
		if atEnd {
			return all, named(all)
		}
	}
}

func named(records []stream.Record) (names []string) {
	for _, r := range records {
		names = append(names, fmt.Sprintf("%s/%d", r.Event.ID, r.Event.Revision))
	}
	return names
}

func catchUpTo(ends ...stream.Progress) *stream.CatchUp {
	return &stream.CatchUp{Partitions: ends}
}

func narrow(
	t *testing.T, catchUp *stream.CatchUp, sources ...reconcile.Source,
) []reconcile.Source {
	t.Helper()
	narrowed, err := reconcile.Between(sources, tenToEleven(), catchUp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range narrowed {
			_ = s.Close()
		}
	})
	return narrowed
}

// resumes checks that a source opened after any record it gives goes on with the next one, which
// has the position it has among all records.
func resumes(t *testing.T, s reconcile.Source, full []stream.Record, want []string) {
	t.Helper()
	positions := map[string]string{}
	for _, r := range full {
		positions[named([]stream.Record{r})[0]] = r.Position
	}
	given, _ := readAll(t, s, "")
	for i, r := range given {
		if got := positions[named(given[i : i+1])[0]]; got != r.Position {
			t.Errorf("%v has position %s, want %s", r.Event, r.Position, got)
		}
		if _, rest := readAll(t, s, r.Position); !slices.Equal(rest, want[i+1:]) {
			t.Errorf("after %s got %v, want %v", r.Position, rest, want[i+1:])
		}
	}
}

func TestFileBetweenTimes(t *testing.T) {
	t.Parallel()
	for format, text := range map[string]func([]fact) string{"ndjson": ndjson, "csv": csv} {
		path := filepath.Join(t.TempDir(), "facts."+format)
		if err := os.WriteFile(path, []byte(text(facts)), 0o600); err != nil {
			t.Fatal(err)
		}
		source := func() *file.Source {
			s, err := file.New(file.Config{Path: path, Mapping: factMapping()})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		whole := source()
		full, _ := readAll(t, whole, "")
		identity := whole.Identity()
		if err := whole.Close(); err != nil || len(full) != len(facts) {
			t.Fatalf("%d records, %v", len(full), err)
		}
		narrowed := narrow(t, catchUpTo(stream.Progress{
			Partition: whole.Partition(), To: full[soFar-1].Position, Identity: identity,
		}), source())
		if _, got := readAll(t, narrowed[0], ""); !slices.Equal(got, concerned) {
			t.Errorf("%s: got %v, want %v", format, got, concerned)
		}
		want := reconcile.Reading{
			Partition: whole.Partition(), Read: soFar, Given: int64(len(concerned)),
			To: full[soFar-1].Position,
		}
		if got := reconcile.Readings(narrowed); len(got) != 1 || got[0] != want {
			t.Errorf("%s: readings %+v, want %+v", format, got, want)
		}
		resumes(t, narrowed[0], full, concerned)
	}
}

// TestSealedLastLineBetweenTimes: a last line without a newline was read, since the file was
// sealed.
func TestSealedLastLineBetweenTimes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	text := strings.TrimSuffix(ndjson(facts[:soFar]), "\n\n"+`{"half a line`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := file.New(file.Config{Path: path, Mapping: factMapping()})
	if err != nil {
		t.Fatal(err)
	}
	end := stream.Progress{Partition: s.Partition(), To: fmt.Sprint(len(text))}
	if _, got := readAll(t, narrow(t, catchUpTo(end), s)[0], ""); !slices.Equal(got, concerned) {
		t.Errorf("got %v, want %v", got, concerned)
	}
}

func TestReplacedFileBetweenTimes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "facts.ndjson")
	if err := os.WriteFile(path, []byte(ndjson(facts)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := file.New(file.Config{Path: path, Mapping: factMapping()})
	if err != nil {
		t.Fatal(err)
	}
	full, _ := readAll(t, s, "")
	end := stream.Progress{
		Partition: s.Partition(), To: full[soFar-1].Position, Identity: s.Identity(),
	}
	if err := os.WriteFile(path, []byte(ndjson(facts[1:])), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = narrow(t, catchUpTo(end), s)[0].Open(t.Context(), "", "")
	if !errors.Is(err, stream.ErrPositionLost) {
		t.Errorf("opened a replaced file: %v", err)
	}
}

func TestBetweenRefuses(t *testing.T) {
	t.Parallel()
	lane := &laneSource{lane: oracle.Slice{Partition: stream.Partition{Source: "here"}}}
	gone := stream.Progress{Partition: stream.Partition{Source: "gone"}, To: "7"}
	if _, err := reconcile.Between([]reconcile.Source{lane}, tenToEleven(), catchUpTo(gone)); err ==
		nil || !strings.Contains(err.Error(), "left/gone/0") {
		t.Errorf("a partition without a source: %v", err)
	}
	never := tenToEleven()
	never.To = never.From
	if _, err := reconcile.Between([]reconcile.Source{lane}, never, catchUpTo()); err == nil {
		t.Error("an empty range is no error")
	}
	if got, _ := readAll(t, narrow(t, catchUpTo(), lane)[0], ""); len(got) > 0 {
		t.Errorf("a source that was never read gives %v", got)
	}
}

// TestHistoriesBetweenTimes reads random histories for a random range, which is widened twice by
// the window, joins what comes, and compares the results with a member in the range widened once
// with those of one SQL join over everything.
func TestHistoriesBetweenTimes(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyDB(t)
	compared, left := 0, 0
	for seed := range oracle.Seeds(t, 2000, 40) {
		history := oracle.Generate(seed, oracle.Confluent)
		n, out, err := compareBetween(t, db, history)
		if err != nil {
			t.Fatalf("seed %d (replay with TALLY_SEED=%d): %v\n%s", seed, seed, err,
				history.Describe(history.Split(seed)))
		}
		compared, left = compared+n, left+out
	}
	t.Logf("compared %d results, left %d records out", compared, left)
	if os.Getenv("TALLY_SEED") == "" && (compared == 0 || left == 0) {
		t.Error("nothing was compared, or nothing left out")
	}
}

func compareBetween(
	t *testing.T, db *testenv.Database, history *oracle.History,
) (compared, left int, err error) {
	rng := rand.New(rand.NewPCG(history.Seed, 11))
	reach := max(history.Rule.Before, history.Rule.After)
	scope := someRange(history, rng)
	scope = stream.Range{From: scope.From.Add(-reach), To: scope.To.Add(reach)}
	wide := stream.Range{From: scope.From.Add(-reach), To: scope.To.Add(reach)}
	batch, left, err := batchBetween(t, history, wide)
	if err != nil {
		return 0, 0, err
	}
	got := inScope(joined(history, batch), history, scope)
	all, err := batchOf(t.Context(), db, history)
	if err != nil {
		return 0, 0, err
	}
	if want := inScope(all, history, scope); !slices.Equal(got, want) {
		return 0, 0, fmt.Errorf("results of %v are\n%q\nwant\n%q", scope, got, want)
	}
	return len(got), left, nil
}

// batchOf gives the results of one SQL join over the raw events.
func batchOf(
	ctx context.Context, db *testenv.Database, history *oracle.History,
) ([]string, error) {
	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := oracle.Batch(ctx, tx, history, oracle.BatchSQL{
		RawEvent: queries.Torture("raw_event"), Join: queries.Torture("batch"),
	})
	return lines, errors.Join(err, tx.Rollback(context.WithoutCancel(ctx)))
}

// someRange gives a range around the time of some event.
func someRange(history *oracle.History, rng *rand.Rand) stream.Range {
	var times []stream.Micros
	for _, lane := range history.Lanes {
		for _, r := range lane.Records {
			if r.Reason == "" && r.Event.HasTime {
				times = append(times, r.Event.Time)
			}
		}
	}
	from := times[rng.IntN(len(times))]
	lengths := []time.Duration{time.Microsecond, time.Second, 20 * time.Second}
	return stream.Range{From: from, To: from.Add(lengths[rng.IntN(len(lengths))])}
}

// batchBetween reads all partitions for a range, and counts what is left out.
func batchBetween(
	t *testing.T, history *oracle.History, wide stream.Range,
) (batch *stream.Batch, left int, err error) {
	sources, catchUp := lanesOf(history)
	narrowed, err := reconcile.Between(sources, wide, catchUp)
	if err != nil {
		return nil, 0, err
	}
	batch = &stream.Batch{Clock: history.Split(history.Seed)[0].Clock}
	for i := range narrowed {
		left += len(history.Lanes[i].Records)
		records, _ := readAll(t, narrowed[i], "")
		batch.Parts = append(batch.Parts, stream.Part{
			Partition: narrowed[i].Partition(), Records: records,
			To: catchUp.Partitions[i].To, Sealed: true,
		})
	}
	return batch, left - batch.Records(), nil
}

// lanesOf gives the sources of a history, and where a generation stands that has read and sealed
// all.
func lanesOf(history *oracle.History) (sources []reconcile.Source, catchUp *stream.CatchUp) {
	catchUp = &stream.CatchUp{Watermark: stream.Infinity}
	for _, lane := range history.Lanes {
		source := &laneSource{lane: lane}
		sources = append(sources, source)
		end := stream.Progress{
			Partition: lane.Partition, Identity: source.Identity(), Watermark: stream.Infinity,
		}
		if n := len(lane.Records); n > 0 {
			end.To = lane.Records[n-1].Position
		}
		catchUp.Partitions = append(catchUp.Partitions, end)
	}
	return sources, catchUp
}

// joined gives the active results of one epoch that reads everything.
func joined(history *oracle.History, batch *stream.Batch) (lines []string) {
	cfg := configOf(history.Rule, rand.New(rand.NewPCG(1, 1)))
	cfg.CacheRows, cfg.ClosingsMax = 1<<20, 1<<20
	slices.SortFunc(batch.Parts, func(a, b stream.Part) int {
		return a.Compare(b.Partition)
	})
	start := join.Start{Watermark: stream.NegInfinity}
	delta := join.New(cfg, start).Step(batch, &stream.Found{})
	for _, c := range delta.Changes {
		if c.Status.Active() {
			lines = append(lines, fmt.Sprintf("%s %s %s", c.Status, member(c.Left), member(c.Right)))
		}
	}
	slices.Sort(lines)
	return lines
}

func member(m stream.Member) string {
	if m.ID == "" {
		return "-"
	}
	return fmt.Sprintf("%s/%d", m.ID, m.Revision)
}

// inScope keeps the results with a member in a range.
func inScope(lines []string, history *oracle.History, scope stream.Range) (kept []string) {
	inside := map[string]bool{}
	for _, lane := range history.Lanes {
		for _, r := range lane.Records {
			if e := r.Event; r.Reason == "" && e.HasTime && e.Time >= scope.From && e.Time < scope.To {
				inside[fmt.Sprintf("%s %s/%d", lane.Side, e.ID, e.Revision)] = true
			}
		}
	}
	for _, line := range lines {
		members := strings.Fields(line)
		if inside["left "+members[1]] || inside["right "+members[2]] {
			kept = append(kept, line)
		}
	}
	return kept
}
