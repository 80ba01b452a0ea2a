package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tallystick/tallystick/reconcile/stream"
	"github.com/tallystick/tallystick/store"
)

// outcome is what a comparison is expected to say.
type outcome struct {
	scope                          store.Scope
	passed                         bool
	onlyBase, onlyCandidate, both  int64
	explained, unexplained, listed int64
}

func outcomeOf(c *store.Comparison) outcome {
	return outcome{
		c.Scope, c.Passed, c.OnlyBase, c.OnlyCandidate, c.InBoth, c.Explained, c.Unexplained,
		int64(len(c.Differences)),
	}
}

// describe gives a difference in one line.
func describe(d *store.Difference) string {
	if d.What != "" {
		return fmt.Sprintf("%s: %s", d.Kind, d.What)
	}
	text := string(d.Kind) + " " + d.Result
	for _, id := range []*string{d.LeftID, d.RightID} {
		if id != nil {
			text += " " + *id
		}
	}
	if len(d.Changed) > 0 {
		text += " " + strings.Join(d.Changed, ",")
	}
	return text + " by [" + strings.Join(d.ExplainedBy, ",") + "]"
}

// byExplanation orders differences as a comparison lists them.
func byExplanation(a, b store.Difference) int {
	place := func(d *store.Difference) int {
		switch {
		case !d.Acceptable():
			return 0
		case len(d.ExplainedBy) == 0:
			return 1
		}
		return 2
	}
	return place(&a) - place(&b)
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	l1, l2, l3 := leftRow(1, "k1"), leftRow(2, "k2"), leftRow(3, "k3")
	r1, r2, r3 := rightRow(1, "k1"), rightRow(2, "k2"), rightRow(3, "k3")
	revised := rightRow(1, "k4")
	revised.ID, revised.Revision = "r4", 2
	met := func() *stand { return usual().without("l3").with(pair(l3, r3)).hold(r3) }
	for _, c := range []struct {
		name            string
		base, candidate *stand
		change          string
		want            outcome
		differences     []string
	}{
		{
			"equal", usual(), usual(), "",
			outcome{store.EveryResult, true, 0, 0, 4, 0, 0, 0},
			nil,
		},
		{
			"a late partner", usual().set(r3.Event), met(), "",
			outcome{store.EveryResult, true, 1, 1, 3, 2, 0, 2},
			[]string{
				"only_base left_only l3 by [0-2-0]", "only_candidate pair l3 r3 by [0-2-0]",
			},
		},
		{
			"two corrections of a pair", usual().set(r3.Event, event("r3", "k3", 15)), met(), "",
			outcome{store.EveryResult, true, 1, 1, 3, 2, 0, 2},
			[]string{
				"only_base left_only l3 by [0-2-0,0-2-1]",
				"only_candidate pair l3 r3 by [0-2-0,0-2-1]",
			},
		},
		{
			"a late event of the same key alone", usual().set(event("r9", "k3", 15)),
			usual().without("l3"), "",
			outcome{store.EveryResult, false, 1, 0, 3, 0, 1, 1},
			[]string{"only_base left_only l3 by []"},
		},
		{
			"a resolved correction", usual().set(r3.Event), met(),
			"update SCHEMA.correction set status = 'resolved'",
			outcome{store.EveryResult, false, 1, 1, 3, 0, 2, 2},
			[]string{
				"only_base left_only l3 by []", "only_candidate pair l3 r3 by []",
			},
		},
		{
			"a partner that no pair explains", usual().set(r3.Event), met().without("r4"), "",
			outcome{store.EveryResult, false, 2, 1, 2, 2, 1, 3},
			[]string{
				"only_base right_only r4 by []",
				"only_base left_only l3 by [0-2-0]", "only_candidate pair l3 r3 by [0-2-0]",
			},
		},
		{
			"a row too many", usual(), met(), "",
			outcome{store.EveryResult, false, 1, 1, 3, 0, 2, 2},
			[]string{
				"only_base left_only l3 by []", "only_candidate pair l3 r3 by []",
			},
		},
		{
			"a row removed", usual(), usual().without("r4"), "",
			outcome{store.EveryResult, false, 1, 0, 3, 0, 1, 1},
			[]string{"only_base right_only r4 by []"},
		},
		{
			"an amount changed", usual(), usual().change("l2", func(r *stream.Result) {
				r.Differences = `[{"field":"amount","left":"1.10","right":"2.11"}]`
			}), "",
			outcome{store.EveryResult, false, 0, 0, 4, 0, 1, 1},
			[]string{"changed pair l2 r2 differences by []"},
		},
		{
			"a verdict changed", usual(), usual().change("l2", func(r *stream.Result) {
				r.Verdict, r.Differences = "agree", ""
			}), "",
			outcome{store.EveryResult, false, 0, 0, 4, 0, 1, 1},
			[]string{"changed pair l2 r2 verdict,differences by []"},
		},
		{
			"a key swapped", usual(), usual().change("l2", func(r *stream.Result) { r.Key = "k1" }),
			"",
			outcome{store.EveryResult, false, 0, 0, 4, 0, 1, 1},
			[]string{"changed pair l2 r2 key by []"},
		},
		{
			"partners swapped", usual(), usual().without("l1", "l2").with(pair(l1, r2), pair(l2, r1)),
			"",
			outcome{store.EveryResult, false, 2, 2, 2, 0, 4, 4},
			nil,
		},
		{
			"another time", usual(), usual().change("l3", func(r *stream.Result) {
				r.Left.Time++
			}), "",
			outcome{store.EveryResult, false, 0, 0, 4, 0, 1, 1},
			[]string{"changed left_only l3 left_time by []"},
		},
		{
			"a status changed", usual().at(24), usual().at(24).wait("l3").wait("r4"), "",
			outcome{store.EveryResult, false, 0, 0, 4, 0, 2, 2},
			[]string{
				"changed left_only l3 status by []", "changed right_only r4 status by []",
			},
		},
		{
			"an earlier watermark", usual(), usual().at(24).wait("l3").wait("r4"), "",
			outcome{store.FinalResults, true, 0, 0, 2, 0, 0, 0},
			nil,
		},
		{
			"an earlier watermark, a row removed",
			usual(), usual().at(24).wait("l3").wait("r4").without("l2"), "",
			outcome{store.FinalResults, false, 1, 0, 1, 0, 1, 1},
			[]string{"only_base pair l2 r2 by []"},
		},
		{
			"a later watermark", usual().at(24).wait("l3").wait("r4"), usual(), "",
			outcome{store.FinalResults, true, 0, 0, 2, 0, 0, 0},
			nil,
		},
		{
			"other positions", usual(), usual().at(30).read("901"), "",
			outcome{store.FinalResults, true, 0, 0, 4, 0, 0, 0},
			nil,
		},
		{
			"a source left out", usual(), usual().lacking(), "",
			outcome{store.FinalResults, false, 3, 2, 1, 0, 5, 6},
			nil,
		},
		{
			"behind", usual(), usual().at(1).without("l1", "l2", "l3", "r4"), "",
			outcome{store.FinalResults, false, 0, 0, 0, 0, 0, 1},
			[]string{
				"coverage: shard 0 has watermark 1970-01-01 00:10:00+00; " +
					"it catches up at 1970-01-01 00:20:00+00",
			},
		},
		{
			"damage", usual(), usual(), "update SCHEMA.match set key = 'x' where left_id = 'l3'",
			outcome{store.EveryResult, false, 0, 0, 4, 0, 0, 1},
			nil,
		},
		{
			"an interval", usual(), usual().without("l3", "r4"), interval,
			outcome{store.EveryResult, true, 0, 0, 2, 0, 0, 0},
			nil,
		},
		{
			"an interval, a row removed", usual(), usual().without("l3", "r4", "l1"), interval,
			outcome{store.EveryResult, false, 1, 0, 1, 0, 1, 1},
			[]string{"only_base pair l1 r1 by []"},
		},
		{
			"an interval that leaves a revision out", usual().set(revised.Event),
			usual().without("l3", "r4").with(only(revised, stream.Final)), interval,
			outcome{store.EveryResult, false, 0, 1, 2, 1, 0, 2},
			[]string{
				"coverage: the right event r4 is served as revision 1 at 1970-01-01 02:50:00+00, outside " +
					"the interval, which has its revision 2; begin one that has both",
				"only_candidate right_only r4 by [0-2-0]",
			},
		},
		{
			"an interval at another watermark", usual(), usual().at(22).without("l2", "l3", "r4"),
			interval,
			outcome{store.FinalResults, true, 0, 0, 1, 0, 0, 0},
			nil,
		},
		{
			"another rule", usual(), usual().without("l2").with(
				only(l2, stream.Final), only(r2, stream.Final)).again(), otherRule,
			outcome{store.EveryResult, true, 1, 2, 3, 3, 0, 3},
			[]string{
				"only_base pair l2 r2 by [rule v2]", "only_candidate left_only l2 by [rule v2]",
				"only_candidate right_only r2 by [rule v2]",
			},
		},
		{
			"another rule, events lost", usual(),
			usual().without("r2", "r4").forget("r2", "r4").again(), otherRule,
			outcome{store.EveryResult, false, 2, 0, 2, 2, 0, 3},
			[]string{
				"coverage: 2 right events of results of the base are unknown to the candidate",
				"only_base pair l2 r2 by [rule v2]", "only_base right_only r4 by [rule v2]",
			},
		},
		{
			"another rule that leaves rows out", usual(),
			usual().without("l3", "r4").forget("l3", "r4").again(),
			strings.ReplaceAll(otherRule, "full", "inner"),
			outcome{store.EveryResult, true, 2, 0, 2, 2, 0, 2},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := setupContest(t, c.base, c.candidate)
			if c.change != "" {
				x.exec(t, c.change)
			}
			got := x.validate(t)
			if o := outcomeOf(&got); o != c.want {
				t.Errorf("got  %+v\nwant %+v", o, c.want)
			}
			var said []string
			for i := range got.Differences {
				said = append(said, describe(&got.Differences[i]))
			}
			if !slices.IsSortedFunc(got.Differences, byExplanation) {
				t.Errorf("the unexplained are not first: %s", lines(said))
			}
			slices.Sort(said)
			slices.Sort(c.differences)
			if c.differences != nil && !slices.Equal(said, c.differences) || t.Failed() {
				t.Errorf("got %s\nwant %s", lines(said), lines(c.differences))
			}
			stored, err := x.Validated(t.Context(), x.candidate)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, asJSON(t, stored), asJSON(t, got))
		})
	}
}

func TestValidateTotals(t *testing.T) {
	t.Parallel()
	changed := usual().without("r4").change("l2", func(r *stream.Result) {
		r.Differences = `[{"field":"amount","difference":"-0.30"},{"field":"note"}]`
	}).change("l1", func(r *stream.Result) {
		r.Verdict = "agree"
		r.Differences = `[{"field":"amount","difference":"9007199254740993.000001"}]`
	})
	changed.change("l3", func(r *stream.Result) { r.Left.Time = 144 * tick })
	got := setupContest(t, usual(), changed).validate(t)
	want := []store.Total{
		{By: "results", Name: "all", Base: "4", Candidate: "3"},
		{By: "keys", Name: "distinct", Base: "4", Candidate: "3"},
		{By: "status", Name: "final", Base: "2", Candidate: "1"},
		{By: "status", Name: "matched", Base: "2", Candidate: "2"},
		{By: "kind", Name: "left_only", Base: "1", Candidate: "1"},
		{By: "kind", Name: "pair", Base: "2", Candidate: "2"},
		{By: "kind", Name: "right_only", Base: "1", Candidate: "0"},
		{By: "verdict", Name: "agree", Base: "0", Candidate: "1"},
		{By: "verdict", Name: "differ", Base: "2", Candidate: "1"},
		{By: "differing", Name: "amount", Base: "2", Candidate: "2"},
		{By: "differing", Name: "note", Base: "0", Candidate: "1"},
		{By: "difference", Name: "amount", Base: "0", Candidate: "9007199254740992.700001"},
		{By: "day", Name: "1970-01-01", Base: "4", Candidate: "2"},
		{By: "day", Name: "1970-01-02", Base: "0", Candidate: "1"},
	}
	if !slices.Equal(got.Totals, want) {
		t.Errorf("got %s\nwant %s", lines(got.Totals), lines(want))
	}
}

// TestValidateManyDifferences: at most a thousand are listed, and those before the last 400 days are
// added up as one.
func TestValidateManyDifferences(t *testing.T) {
	t.Parallel()
	x := setupContest(t, usual(), usual())
	x.exec(t, `insert into SCHEMA.match (generation_id, shard, bucket, match_id, kind, status, left_id,
			left_revision, key, left_time, horizon, opened_epoch, changed_epoch, row_hash)
		select $1, 0, n, sha256(n::text::bytea), 'left_only', 'final', 'x' || n, 1, 'x',
			to_timestamp(n * 86400), '-infinity', 1, 1, sha256('')
		from generate_series(1, 1100) n`, x.generation)
	got := x.validate(t)
	want := outcome{store.EveryResult, false, 1100, 0, 4, 0, 1100, 1000}
	if o := outcomeOf(&got); o != want {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
	days := 0
	for _, total := range got.Totals {
		if total.By == "day" {
			days++
		}
		if total.Name == "earlier" && (total.Base != "704" || total.Candidate != "4") {
			t.Errorf("the earlier days have %+v", total)
		}
	}
	if days != 401 {
		t.Errorf("%d totals by day, want 401", days)
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	x := setupContest(t, usual(), usual().without("r4"))
	ctx := t.Context()
	if _, err := x.Validated(ctx, x.candidate); !errors.Is(err, store.ErrNotValidated) {
		t.Errorf("before the first: %v, want ErrNotValidated", err)
	}
	if _, err := x.Accept(ctx, x.candidate, "ann", "why"); !errors.Is(err, store.ErrNotValidated) {
		t.Errorf("accept before the first: %v, want ErrNotValidated", err)
	}
	if got := x.validate(t); got.Accepted() || got.Number != 1 {
		t.Errorf("validated: %+v", got)
	}
	if _, err := x.Accept(ctx, x.candidate, "ann", ""); err == nil {
		t.Error("accepted without a reason")
	}
	told, err := x.Accept(ctx, x.candidate, "ann", "r4 was a test")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := x.Validated(ctx, x.candidate)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, asJSON(t, told), asJSON(t, stored))
	if !stored.Accepted() || stored.Passed || stored.AcceptedBy != "ann" ||
		stored.AcceptedWhy != "r4 was a test" {
		t.Errorf("accepted: %+v", stored)
	}
	if got := x.validate(t); got.Accepted() || got.Number != 2 {
		t.Errorf("validated again: accepted %v, number %d", got.Accepted(), got.Number)
	}
	x.exec(t, `update SCHEMA.match set key = 'x' where generation_id = $1 and left_id = 'l3'`,
		x.candidate)
	x.validate(t)
	_, err = x.Accept(ctx, x.candidate, "ann", "why not")
	if !errors.Is(err, store.ErrNotValidated) || !strings.Contains(err.Error(), "match (") {
		t.Errorf("accept damage: %v, want ErrNotValidated that names the row", err)
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	x := setupContest(t, usual(), usual())
	refused := func(generation int32, says string) {
		t.Helper()
		_, err := x.Validate(t.Context(), generation)
		if !errors.Is(err, store.ErrNotReady) || !strings.Contains(err.Error(), says) {
			t.Errorf("generation %d: %v, want ErrNotReady that says %q", generation, err, says)
		}
	}
	refused(x.generation, "it is serving")
	refused(999, "no such generation")
	other := x.register(t, "other", 1)
	x.exec(t, `update SCHEMA.serving set generation_id = $1 where reconciliation = 'payments'`, other)
	refused(x.candidate, fmt.Sprintf("begun on generation %d, and %d serves", x.generation, other))
}
